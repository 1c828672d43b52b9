"""Partial attention of many PEs, merged in a tree."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs.small import HEADS, SIPS, run_small
from tilewright.errors import BenchError
from tilewright.host import PeCoord, RuntimeContext
from tilewright.programs import PROGRAMS
from tilewright.programs.builtin.decode_merge import merge_tree


@settings(max_examples=10, deadline=None)
@given(
    cubes=st.integers(1, 4),
    pes=st.integers(1, 4),
    extra=st.integers(0, 90),
    kv_heads=st.integers(1, 3),
    key_block=st.integers(1, 40),
    seed=st.integers(0, 9),
)
def test_any_spread_of_the_keys_gives_attention(
    cubes: int, pes: int, extra: int, kv_heads: int, key_block: int, seed: int
) -> None:
    sizes: dict[str, Any] = {
        "cubes": cubes,
        "pes": pes,
        "context": cubes * pes + extra,
        "kv_heads": kv_heads,
        "q_heads": 2 * kv_heads,
        "key_block": key_block,
    }
    outcome = run_small("decode_merge", seed=seed, **sizes)
    assert outcome.values_ok is True
    assert outcome.bound.total_ps <= outcome.latency_ps


def test_sips_take_part_and_no_access_is_wrong() -> None:
    with RuntimeContext(SIPS, sanitize=True) as torch:  # a finding raises at the end
        sizes: dict[str, Any] = {"context": 300, "sips": 0, "cubes": 2, **HEADS}
        outcome = PROGRAMS["decode_merge"].run(torch, **sizes)
    assert outcome.values_ok is True
    assert outcome.notes == ("24 PEs merge in a tree, 4 messages deep",)


@given(sips=st.integers(1, 5), cubes=st.integers(1, 16), pes=st.integers(1, 8))
def test_a_tree_has_every_pe_once_and_few_messages_in_a_row(
    sips: int, cubes: int, pes: int
) -> None:
    tree = merge_tree(tuple(range(sips)), cubes, pes)
    below = [child for children in tree.children.values() for child in children]
    assert len(below) == len(set(below)) == sips * cubes * pes - 1
    assert tree.root not in below
    deepest = sum((count - 1).bit_length() for count in (sips, cubes, pes))
    assert tree.depth(tree.root) <= deepest


@given(sips=st.integers(1, 3), cubes=st.integers(1, 9), pes=st.integers(1, 8))
def test_few_parts_leave_a_cube_and_fewer_a_sip(sips: int, cubes: int, pes: int) -> None:
    tree = merge_tree(tuple(range(sips)), cubes, pes)
    pairs = [(parent, child) for parent, below in tree.children.items() for child in below]
    assert sum(parent.sip != child.sip for parent, child in pairs) == sips - 1
    elsewhere = [(p, c) for p, c in pairs if (p.sip, p.cube) != (c.sip, c.cube)]
    assert len(elsewhere) == sips * cubes - 1


def test_a_parent_takes_its_own_cube_first() -> None:
    tree = merge_tree((0, 1), 2, 4)
    near = [PeCoord(0, 0, 1), PeCoord(0, 0, 2)]
    assert tree.children[tree.root] == [*near, PeCoord(0, 1, 0), PeCoord(1, 0, 0)]


def test_more_pes_take_less_time() -> None:
    sizes: dict[str, Any] = {"context": 4096, "kv_heads": 4, "q_heads": 8, "key_block": 128}
    times = [run_small("decode_merge", cubes=cubes, **sizes).latency_ps for cubes in (1, 4)]
    assert times[1] < times[0]


def test_a_context_that_leaves_a_pe_empty_is_refused() -> None:
    with pytest.raises(BenchError, match="context=11 for 12 PEs"):
        run_small("decode_merge", context=11)
