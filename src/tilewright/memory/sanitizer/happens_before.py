"""What is known to be complete when an access begins: the order that programs make, not chance.

A *strand* is a row of programs, each after the end of the one before: the accesses of one stream of
a PE. Inside a strand accesses go on beside each other, so what is complete is a set: a mask with a
bit for each access. What a strand knows of the others came by messages and atomics.
"""

from collections.abc import Mapping

from tilewright.memory.sanitizer.access_set import Places

Known = Mapping[int, int]
"""By strand: the mask of its accesses that are complete."""


def joined(one: Known, other: Known) -> Known:
    """What is known by both ways.

    >>> joined({0: 0b01}, {0: 0b10, 3: 0b1})
    {0: 3, 3: 1}
    """
    if not other or one is other:
        return one
    if not one:
        return other
    both = dict(one)
    for strand, mask in other.items():
        both[strand] = both.get(strand, 0) | mask
    return both


class Past:
    """What comes before an access or a message of a strand.

    Atomics among it have learned something from others by the time that they are complete, so
    ``known`` may be asked for only then.
    """

    __slots__ = ("_folded", "_known", "_others", "_own", "_places", "strand")

    def __init__(self, strand: "Strand", places: Places) -> None:
        self.strand = strand
        self._own = strand.own
        self._places = places
        self._others = strand.others
        self._folded = strand.folded
        self._known: Known | None = None

    @property
    def known(self) -> Known:
        """All of it, the strand's own accesses too."""
        if self._known is None:
            strand, others = self.strand, self._others
            own = self._own | self._places.mask
            for place in Places(0, own & strand.atomics & ~self._folded).places():
                others = joined(others, strand.acquired[place])
            self._known = joined(others, {strand.number: own} if own else {})
        return self._known

    def knows(self, strand: "Strand", place: int) -> bool:
        return bool(self.known.get(strand.number, 0) >> place & 1)


class Strand:
    """Counts accesses, and keeps what its running program knows.

    >>> from tilewright.memory.sanitizer.access_set import NOWHERE
    >>> sender, receiver = Strand(0), Strand(1)
    >>> store = sender.next_place()
    >>> receiver.learn_from(sender.past(NOWHERE))  # a message that does not wait for the store
    >>> receiver.past(NOWHERE).knows(sender, store)
    False
    >>> receiver.learn_from(sender.past(Places.one(store)))
    >>> receiver.past(NOWHERE).knows(sender, store)
    True
    """

    __slots__ = ("acquired", "atomics", "folded", "num_accesses", "number", "others", "own")

    def __init__(self, number: int) -> None:
        self.number = number
        self.num_accesses = 0
        self.own = 0  # a bit for each access that the running program knows to be complete
        self.others: Known = {}
        self.atomics = 0  # accesses that learn from others
        self.acquired: dict[int, Known] = {}  # by atomic that is complete: what it has learned
        self.folded = 0  # atomics whose knowledge is among the others'

    def next_place(self) -> int:
        self.num_accesses += 1
        return self.num_accesses - 1

    def past(self, places: Places) -> Past:
        """Of something that begins now and comes after these accesses."""
        return Past(self, places)

    def learn(self, places: Places) -> None:
        """The program has waited until these accesses are complete."""
        mask = places.mask
        self.own |= mask
        for place in Places(0, mask & self.atomics & ~self.folded).places():
            self.others = joined(self.others, self.acquired[place])
            self.folded |= 1 << place

    def expect(self, places: Places) -> None:
        """Whatever the program does from now on comes after these accesses."""
        self.own |= places.mask

    def learn_from(self, past: Past) -> None:
        """The program has a message that was sent after all that."""
        self.others = joined(self.others, past.known)

    def end_program(self) -> None:
        """The next program begins when all of this one is complete."""
        self.expect(Places.up_to(self.num_accesses))
