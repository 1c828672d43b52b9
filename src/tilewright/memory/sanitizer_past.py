"""What is known to be complete when an access begins: the order that programs make, not chance.

A *strand* is a row of programs, each after the end of the one before: the accesses of one stream of
a PE. Inside a strand accesses go on beside each other, so what is complete is a set: a mask with a
bit for each access. What a strand knows of the others came by messages and atomics.
"""

from collections.abc import Iterator, Mapping

__all__ = ("Known", "Past", "Strand", "joined")

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

    __slots__ = ("_folded", "_known", "_others", "own", "strand")

    def __init__(self, strand: "Strand", own: int) -> None:
        self.own = own
        self.strand = strand
        self._others = strand.others
        self._folded = strand.folded
        self._known: Known | None = None

    @property
    def known(self) -> Known:
        """All of it, the strand's own accesses too."""
        if self._known is None:
            others = self._others
            for place in places_of(self.own & self.strand.atomics & ~self._folded):
                others = joined(others, self.strand.acquired[place])
            self._known = joined(others, {self.strand.number: self.own} if self.own else {})
        return self._known

    def knows(self, strand: "Strand", place: int) -> bool:
        return bool(self.known.get(strand.number, 0) >> place & 1)


class Strand:
    """Counts accesses, and keeps what its running program knows.

    >>> sender, receiver = Strand(0), Strand(1)
    >>> store = sender.next_place()
    >>> receiver.learn_from(sender.past(0))  # a message that does not wait for the store
    >>> receiver.past(0).knows(sender, store)
    False
    >>> receiver.learn_from(sender.past(1 << store))
    >>> receiver.past(0).knows(sender, store)
    True
    """

    __slots__ = ("acquired", "atomics", "folded", "num_accesses", "number", "others", "own")

    def __init__(self, number: int) -> None:
        self.number = number
        self.num_accesses = 0
        self.own = 0  # accesses that the running program has waited for
        self.others: Known = {}
        self.atomics = 0  # accesses that learn from others
        self.acquired: dict[int, Known] = {}  # by atomic that is complete: what it has learned
        self.folded = 0  # atomics whose knowledge is among the others'

    def next_place(self) -> int:
        self.num_accesses += 1
        return self.num_accesses - 1

    def past(self, mask: int) -> Past:
        """Of something that begins now and comes after these accesses."""
        return Past(self, self.own | mask)

    def learn(self, mask: int) -> None:
        """The program has waited until these accesses are complete."""
        self.own |= mask
        for place in places_of(mask & self.atomics & ~self.folded):
            self.others = joined(self.others, self.acquired[place])
            self.folded |= 1 << place

    def learn_from(self, past: Past) -> None:
        """The program has a message that was sent after all that."""
        self.others = joined(self.others, past.known)

    def end_program(self) -> None:
        """The next program begins when all of this one is complete."""
        self.own = (1 << self.num_accesses) - 1


def places_of(mask: int) -> Iterator[int]:
    """The bits that are set, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
