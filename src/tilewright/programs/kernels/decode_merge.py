"""Attention of one token over keys that are spread: partial results meet on the way up a tree."""

from dataclasses import dataclass
from typing import Any

from tilewright import language as tl
from tilewright.programs.kernels.softmax_state import (
    LOG2_E,
    SoftmaxState,
    attend,
    begin_softmax,
    end_softmax,
    merge_softmax,
)

TO_PARENT = "parent"


@dataclass(frozen=True, slots=True)
class MergePlace:
    """A program's place in the tree: children come one after the other, the nearest first."""

    num_children: int
    is_root: bool


def direction_to_child(number: int) -> str:
    """How the rings of a program's children are called."""
    return f"child{number}"


def decode_merge_kernel(
    q_ptr: Any, k_ptr: Any, v_ptr: Any, out_ptr: Any, tokens: int, place: tl.constexpr,
    kv_heads: int, group: int, head_dim: int, key_block: int, scale: float,
) -> None:  # fmt: skip
    """q and out: (kv_heads, group, head_dim); k and v: (kv_heads, tokens, head_dim), the program's
    own tokens.

    Heads go up the tree one by one: while one travels, the next is computed. Only the root has an
    ``out``.
    """
    sizes = (tokens, group, head_dim, key_block)
    state = _own(q_ptr, k_ptr, v_ptr, 0, sizes, scale)
    for head in range(kv_heads):
        is_last = head + 1 == kv_heads
        following = state if is_last else _own(q_ptr, k_ptr, v_ptr, head + 1, sizes, scale)
        state = _merged(state, place.num_children, group, head_dim)  # type: ignore[attr-defined]
        if place.is_root:  # type: ignore[attr-defined]  # a constant
            out = end_softmax(state).to(out_ptr.dtype.element_ty)
            tl.store(out_ptr + head * group * head_dim, out)
        else:
            for part in state:
                tl.send(TO_PARENT, part)
        state = following


def _own(
    q_ptr: Any, k_ptr: Any, v_ptr: Any, head: int, sizes: tuple[int, ...], scale: float
) -> SoftmaxState:
    """Of a head, over the program's tokens."""
    tokens, group, head_dim, key_block = sizes
    q = tl.load(q_ptr + head * group * head_dim, shape=(group, head_dim))
    scaled = (q * (scale * LOG2_E)).to(q.dtype)
    state = begin_softmax(group, head_dim)
    for first in range(0, tokens, key_block):
        shape = (min(key_block, tokens - first), head_dim)
        place = (head * tokens + first) * head_dim
        k = tl.load(k_ptr + place, shape=shape)
        v = tl.load(v_ptr + place, shape=shape)
        state = attend(state, tl.dot(scaled, tl.trans(k)), v)
    return state


def _merged(state: SoftmaxState, num_children: int, group: int, head_dim: int) -> SoftmaxState:
    """With those of all children, whose parts come in their order."""
    shapes = ((group,), (group,), (group, head_dim))
    coming = [
        [tl.recv_async(direction_to_child(child), shape, tl.float32) for shape in shapes]
        for child in range(num_children)
    ]
    for parts in coming:
        state = merge_softmax(state, SoftmaxState(*map(tl.wait, parts)))
    return state
