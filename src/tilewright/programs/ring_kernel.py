"""Attention of a prompt that is spread over a ring: queries stay, keys and values go round."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np

from tilewright import language as tl
from tilewright.programs.attention import (
    LOG2_E,
    SoftmaxState,
    attend,
    begin_softmax,
    end_softmax,
)
from tilewright.programs.inputs import Array

TO_NEXT, TO_PREVIOUS = "E", "W"
RECEIVES_A_BLOCK = 2  # keys and values
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
        """Parts of a member."""
        return 2 if self.order == "zigzag" else 1

    @property
    def part_size(self) -> int:
        """Tokens of a part that is full."""
        return -(-self.length // (self.num_members * self.num_parts))

    def parts(self, member: int) -> tuple[int, ...]:
        """Return a member's parts in the order of their tokens.

        >>> RingDeal(64, 4, "zigzag").parts(1)
        (1, 6)
        """
        mirrored = (2 * self.num_members - 1 - member,) if self.order == "zigzag" else ()
        return (member, *mirrored)

    def tokens(self, part: int) -> range:
        """Return the tokens of a part; empty behind the end of the prompt.

        >>> RingDeal(10, 4, "contiguous").tokens(3)
        range(9, 10)
        """
        first = min(part * self.part_size, self.length)
        return range(first, min(first + self.part_size, self.length))

    def has_tokens(self, member: int) -> bool:
        """Return whether any of a member's parts has a token.

        >>> [RingDeal(3, 4, "contiguous").has_tokens(member) for member in (2, 3)]
        [True, False]
        """
        return any(self.tokens(part) for part in self.parts(member))

    def num_received(self, *, causal: bool) -> int:
        """Return how many tokens of others the member sees that sees most."""
        return max(self._received_by(member, causal) for member in range(self.num_members))

    def _received_by(self, member: int, causal: bool) -> int:
        own = [self.tokens(part) for part in self.parts(member)]
        num_own = sum(map(len, own))
        seen = max((tokens.stop for tokens in own if tokens), default=0) if causal else self.length
        return seen - num_own if num_own else 0

    @property
    def table(self) -> Array:
        """The parts of each member, (members, parts)."""
        return np.array([self.parts(member) for member in range(self.num_members)])


@dataclass(frozen=True, slots=True)
class RingTiling:
    """Sizes of a head and of what is worked on at a time."""

    group: int
    head_dim: int
    block: int  # queries
    key_block: int  # keys of a message
    causal: bool
    window: int  # commands that a PE may have in flight


class _Keys(NamedTuple):
    """Neighbouring keys and their values: loaded, or handles of messages under way."""

    tokens: range
    k: Any
    v: Any


class _Visit(NamedTuple):
    """What a member has of one head."""

    head: int
    owner: int


class _Queries(NamedTuple):
    """A block of queries of one query head, and where in the member's arrays it is."""

    tokens: range
    place: int
    q: Any


def ring_attention_kernel(
    q_ptr: Any, k_ptr: Any, v_ptr: Any, out_ptr: Any, kv_heads: tl.constexpr,
    member: tl.constexpr, deal: tl.constexpr, tiling: tl.constexpr, scale: float,
) -> None:  # fmt: skip
    """q and out: (kv_heads, parts, group, size, head_dim); k and v: (kv_heads, parts, size,
    head_dim), of the tokens that ``deal`` gives the member.
    """
    pointers = (q_ptr, k_ptr, v_ptr, out_ptr)
    walk = _Walk(pointers, member, deal, tiling, scale * LOG2_E)  # type: ignore[arg-type]  # constants
    walk.run(kv_heads)  # type: ignore[arg-type]


class _Walk:
    """One program on its way through the members' keys, head by head."""

    def __init__(
        self, pointers: tuple[Any, ...], member: int, deal: RingDeal, tiling: RingTiling, scale: Any
    ) -> None:
        self._q_ptr, self._k_ptr, self._v_ptr, self._out_ptr = pointers
        self._member, self._deal, self._tiling, self._scale = member, deal, tiling, scale
        self._next = (member + 1) % deal.num_members
        self._room = deal.num_parts * deal.part_size  # tokens of a head that a member may have
        self._states: list[tuple[_Queries, SoftmaxState]] = []

    def run(self, kv_heads: int) -> None:
        """The member's own keys come first, so that every query sees one before any is masked.

        While it attends to some keys, they are on their way to the next member, and as many of the
        following visit on their way here. What a send comes after was always sent before, so that
        members never wait for each other in a circle, however few commands may be under way: where
        the two receives of a block could keep its sends from being issued, the first member sends
        before it receives.
        """
        num_members = self._deal.num_members
        sends_first = self._tiling.window <= RECEIVES_A_BLOCK and self._member == 0
        visits = [
            _Visit(head, (self._member - step) % num_members)
            for head in range(kv_heads)
            for step in range(num_members)
        ]
        coming = list(self._begin(visits[0]))
        for visit, following in zip(visits, [*visits[1:], None], strict=True):
            here, coming = coming, []
            upcoming = self._begin(following) if following else iter(())
            if visit.owner == self._member:
                self._take_queries(visit.head)
            for keys in here:
                if sends_first:
                    keys = self._passed_on(visit, keys)
                coming += islice(upcoming, 1)
                if not sends_first:
                    keys = self._passed_on(visit, keys)
                self._attend(keys)
            coming += upcoming
            if visit.owner == self._next:
                self._store()

    def _begin(self, visit: _Visit) -> Iterator[_Keys]:
        """Load what is the member's own; expect what is not. One after the other, as asked for."""
        dim = self._tiling.head_dim
        for place, tokens in self._blocks(visit.owner, self._tiling.key_block):
            shape = (len(tokens), dim)
            if visit.owner == self._member:
                at = (visit.head * self._room + place) * dim
                k = tl.load(self._k_ptr + at, shape=shape)
                v = tl.load(self._v_ptr + at, shape=shape)
            else:
                dtype = self._k_ptr.dtype.element_ty
                k = tl.recv_async(TO_PREVIOUS, shape, dtype)
                v = tl.recv_async(TO_PREVIOUS, shape, dtype)
            yield _Keys(tokens, k, v)

    def _passed_on(self, visit: _Visit, keys: _Keys) -> _Keys:
        """Keys that are there; the next member gets them, unless they were its own."""
        if visit.owner != self._member:
            keys = _Keys(keys.tokens, tl.wait(keys.k), tl.wait(keys.v))
        if visit.owner != self._next:
            tl.send(TO_NEXT, keys.k)
            tl.send(TO_NEXT, keys.v)
        return keys

    def _take_queries(self, head: int) -> None:
        """Those of a head, scaled to units of log 2."""
        group, dim, size = self._tiling.group, self._tiling.head_dim, self._deal.part_size
        self._states = []
        for place, tokens in self._blocks(self._member, self._tiling.block):
            part, inside = divmod(place, size)
            for g in range(group):
                row = ((head * self._deal.num_parts + part) * group + g) * size + inside
                q = tl.load(self._q_ptr + row * dim, shape=(len(tokens), dim))
                scaled = (q * self._scale).to(q.dtype)
                queries = _Queries(tokens, row * dim, scaled)
                self._states.append((queries, begin_softmax(len(tokens), dim)))

    def _attend(self, keys: _Keys) -> None:
        """Let all queries that may see these keys see them."""
        transposed = tl.trans(keys.k)
        for number, (queries, state) in enumerate(self._states):
            if self._tiling.causal and queries.tokens[-1] < keys.tokens[0]:
                continue
            scores = tl.dot(queries.q, transposed)
            if self._tiling.causal and queries.tokens[0] < keys.tokens[-1]:
                scores = _masked(scores, queries.tokens, keys.tokens)
            self._states[number] = queries, attend(state, scores, keys.v)

    def _store(self) -> None:
        for queries, state in self._states:
            out = end_softmax(state).to(self._out_ptr.dtype.element_ty)
            tl.store(self._out_ptr + queries.place, out)

    def _blocks(self, owner: int, size: int) -> Iterator[tuple[int, range]]:
        """A member's tokens, so many at a time, and where it has them."""
        for number, part in enumerate(self._deal.parts(owner)):
            tokens = self._deal.tokens(part)
            for first in range(0, len(tokens), size):
                yield number * self._deal.part_size + first, tokens[first : first + size]


def _masked(scores: Any, queries: range, keys: range) -> Any:
    """Without what comes after a query."""
    rows, columns = tl.arange(0, len(queries))[:, None], tl.arange(0, len(keys))[None, :]
    visible = queries[0] + rows >= keys[0] + columns
    return tl.where(visible, scores, -float("inf"))
