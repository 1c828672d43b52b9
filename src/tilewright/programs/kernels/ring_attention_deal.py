"""Which tokens of a prompt a member of a ring has, and which it sees."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
Order = Literal["zigzag", "contiguous"]


@dataclass(frozen=True, slots=True)
class RingDeal:
    """A prompt in parts of equal size, the last ones shorter or empty, dealt to the members.

    In zigzag member m of n has the parts m and 2n - 1 - m: under a causal mask all members then
    see about as many keys. In contiguous order it has part m alone.
    """

    length: int
    num_members: int
    order: Order

    @property
    def num_parts(self) -> int:
        """Of a member."""
        return 2 if self.order == "zigzag" else 1

    @property
    def part_size(self) -> int:
        """Tokens of a part that is full."""
        return -(-self.length // (self.num_members * self.num_parts))

    def parts(self, member: int) -> tuple[int, ...]:
        """In the order of their tokens.

        >>> RingDeal(64, 4, "zigzag").parts(1)
        (1, 6)
        """
        mirrored = (2 * self.num_members - 1 - member,) if self.order == "zigzag" else ()
        return (member, *mirrored)

    def tokens(self, part: int) -> range:
        """Empty behind the end of the prompt.

        >>> RingDeal(10, 4, "contiguous").tokens(3)
        range(9, 10)
        """
        first = min(part * self.part_size, self.length)
        return range(first, min(first + self.part_size, self.length))

    def has_tokens(self, member: int) -> bool:
        """Whether any of a member's parts has a token.

        >>> [RingDeal(3, 4, "contiguous").has_tokens(member) for member in (2, 3)]
        [True, False]
        """
        return any(self.tokens(part) for part in self.parts(member))

    def num_received(self, *, causal: bool) -> int:
        """Tokens of others that some member sees: of the member that sees most."""
        return max(self._received_by(member, causal) for member in range(self.num_members))

    def _received_by(self, member: int, causal: bool) -> int:
        own = [self.tokens(part) for part in self.parts(member)]
        num_own = sum(map(len, own))
        seen = max((tokens.stop for tokens in own if tokens), default=0) if causal else self.length
        return seen - num_own if num_own else 0

    def spread(self, array: Array) -> Array:
        """(kv, group, length, dim) as (members, kv, parts, group, size, dim)."""
        kv, group, _, dim = array.shape
        num_parts = self.num_members * self.num_parts
        padded = np.zeros((kv, group, num_parts * self.part_size, dim), array.dtype)
        padded[:, :, : self.length] = array
        parts = padded.reshape(kv, group, num_parts, self.part_size, dim)
        return parts[:, :, self._table()].transpose(2, 0, 3, 1, 4, 5)

    def collect(self, spread: Array) -> Array:
        """Back again."""
        _, kv, _, group, _, dim = spread.shape
        parts = np.empty((kv, group, self._table().size, self.part_size, dim), spread.dtype)
        parts[:, :, self._table()] = spread.transpose(1, 3, 0, 2, 4, 5)
        return parts.reshape(kv, group, -1, dim)[:, :, : self.length]

    def _table(self) -> Array:
        return np.array([self.parts(member) for member in range(self.num_members)])
