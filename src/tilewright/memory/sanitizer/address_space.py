"""A virtual space that gives out addresses again only when it has no others."""

from collections import deque

from tilewright.errors import OutOfMemoryError
from tilewright.memory.address import VirtualByte
from tilewright.memory.virtual import VirtualSpace


class QuarantinedSpace(VirtualSpace):
    """So an address that somebody kept too long names nothing, rather than another tensor.

    Which addresses tensors have changes no simulated time.

    >>> space = QuarantinedSpace(page_bytes=65_536)
    >>> first = space.allocate(1, requester="tensor a")
    >>> space.free(first, 1)
    >>> space.allocate(1, requester="tensor b") == first
    False
    """

    def __init__(self, *, page_bytes: int, **limits: int) -> None:
        super().__init__(page_bytes=page_bytes, **limits)
        self._waiting: deque[tuple[VirtualByte, int]] = deque()

    def allocate(self, num_bytes: int, *, requester: str) -> VirtualByte:
        while True:
            try:
                return super().allocate(num_bytes, requester=requester)
            except OutOfMemoryError:
                if not self._waiting:
                    raise
                super().free(*self._waiting.popleft())

    def free(self, address: VirtualByte, num_bytes: int) -> None:
        """Later, when there is nothing else left; a wrong one is refused then."""
        self._waiting.append((address, num_bytes))
