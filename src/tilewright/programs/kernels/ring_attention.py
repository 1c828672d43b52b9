"""Attention of a prompt that is spread over a ring: queries stay, keys and values go round."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from tilewright import language as tl
from tilewright.programs.kernels.ring_attention_deal import RingDeal
from tilewright.programs.kernels.softmax_state import (
    LOG2_E,
    SoftmaxState,
    attend,
    begin_softmax,
    end_softmax,
)

TO_NEXT, TO_PREVIOUS = "E", "W"
RECEIVES_A_BLOCK = 2  # keys and values


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
                at = (visit.head * self._head_size + place) * dim
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

    @property
    def _head_size(self) -> int:
        """Tokens that a member has room for."""
        return self._deal.num_parts * self._deal.part_size

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
