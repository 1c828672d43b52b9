"""Policies of both shapes, and their shards against arithmetic of NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import PlacementError
from tilewright.interop.kernbench.placement import DPPolicy, ShardSpec, resolve_dp_policy

WORDS = st.sampled_from(["replicate", "row_wise", "column_wise"])


def test_both_shapes_of_a_policy_mean_the_same() -> None:
    older = DPPolicy("replicate", "row_wise", "column_wise")
    assert older == DPPolicy("row_wise", "column_wise")
    assert older == DPPolicy(cube="row_wise", pe="column_wise", sip="replicate")
    assert DPPolicy("row_wise", "replicate", 4, 2) == DPPolicy(
        cube="row_wise", num_pes=4, num_cubes=2
    )


def test_a_policy_shows_what_it_says_and_is_a_key() -> None:
    policy = DPPolicy(cube="row_wise", num_cubes=4, sip="column_wise", num_sips=2)
    text = "DPPolicy(cube='row_wise', pe='replicate', sip='column_wise', num_sips=2, num_cubes=4)"
    assert repr(policy) == text
    assert {policy: 1}[DPPolicy("row_wise", sip="column_wise", num_sips=2, num_cubes=4)] == 1
    assert policy != "row_wise"


@pytest.mark.parametrize("word", ["rowwise", "Replicate", 3, None])
def test_a_word_that_is_no_layout_is_refused_with_its_level(word: object) -> None:
    with pytest.raises(PlacementError, match=r"DPPolicy cube: found .*'row_wise'"):
        DPPolicy(cube=word)  # type: ignore[arg-type]


@given(sip=WORDS, cube=WORDS, pe=WORDS, rows=st.integers(1, 12), columns=st.integers(1, 12),
       sips=st.integers(1, 2), cubes=st.integers(1, 3), pes=st.integers(1, 4))  # fmt: skip
def test_shards_are_the_blocks_of_nested_array_splits(
    sip: str, cube: str, pe: str, rows: int, columns: int, sips: int, cubes: int, pes: int
) -> None:
    dp = DPPolicy(cube=cube, pe=pe, sip=sip)
    found = resolve_dp_policy(
        dp, shape=(rows, columns), itemsize=4, num_pe=pes, num_cubes=cubes, num_sips=sips
    )
    whole = np.arange(rows * columns).reshape(rows, columns)
    blocks = {
        (s, c, p): of_pe
        for s, of_sip in enumerate(_split(whole, sip, sips))
        for c, of_cube in enumerate(_split(of_sip, cube, cubes))
        for p, of_pe in enumerate(_split(of_cube, pe, pes))
        if of_pe.size
    }
    assert [(each.sip, each.cube, each.pe) for each in found] == list(blocks)
    offsets: dict[bytes, int] = {}  # different blocks lie one after the other
    end = 0
    for shard, block in zip(found, blocks.values(), strict=True):
        if block.tobytes() not in offsets:
            offsets[block.tobytes()] = end
            end += 4 * block.size
        assert (shard.nbytes, shard.offset_bytes) == (4 * block.size, offsets[block.tobytes()])


def _split(array: np.ndarray, word: str, parts: int) -> list[np.ndarray]:
    if word == "replicate":
        return [array] * parts
    return np.array_split(array, parts, axis=0 if word == "row_wise" else 1)


def test_a_target_sip_is_the_only_one() -> None:
    (shard,) = resolve_dp_policy(
        DPPolicy(num_cubes=1, num_pes=1), shape=(8,), itemsize=2, num_pe=8, num_cubes=16,
        target_sip=3,
    )  # fmt: skip
    assert shard == ShardSpec(sip=3, cube=0, pe=0, offset_bytes=0, nbytes=16)
