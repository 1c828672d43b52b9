"""Those who submit tasks to the reference core. Of an owner that has ended a bit is kept."""

from array import array

PAGE_OWNERS = 64  # neighbours, of which the one that has counted farthest is remembered


class Owners:
    """What the core counts for each owner, until the owner ends.

    ``next_sequence`` and ``performed`` are by owner: the owner's next id less its first one, and
    the id of the task that its program waits for.
    """

    __slots__ = ("_ended", "_page_sequence", "next_sequence", "performed")

    def __init__(self) -> None:
        self.next_sequence: dict[int, int] = {}
        self.performed: dict[int, int] = {}
        self._ended = bytearray()  # a bit for each owner
        self._page_sequence = array("q")  # by page: behind all that ended owners have counted

    def begin(self, owner: int) -> int:
        """Return the next sequence of an owner that submits.

        One that had ended counts on behind all its neighbours that had, so that ids are new.
        """
        if owner in self.next_sequence:
            return self.next_sequence[owner]
        if not self.has_ended(owner):
            return 0
        byte, bit = divmod(owner, 8)
        self._ended[byte] ^= 1 << bit
        sequence = self.next_sequence[owner] = self._page_sequence[owner // PAGE_OWNERS]
        return sequence

    def end(self, owner: int) -> None:
        """Note that an owner submits no more; a second time is as good as once."""
        if self.has_ended(owner):
            return
        page, sequence = owner // PAGE_OWNERS, self.next_sequence.pop(owner, 0)
        missing = page + 1 - len(self._page_sequence)
        if missing > 0:
            self._page_sequence.extend([0] * missing)
            self._ended.extend(bytes(missing * PAGE_OWNERS // 8))
        self._page_sequence[page] = max(self._page_sequence[page], sequence)
        self.performed.pop(owner, None)
        byte, bit = divmod(owner, 8)
        self._ended[byte] |= 1 << bit

    def has_ended(self, owner: int) -> bool:
        """Return whether an owner has ended and not submitted since."""
        byte, bit = divmod(owner, 8)
        return byte < len(self._ended) and bool(self._ended[byte] >> bit & 1)
