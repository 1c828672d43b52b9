from typing import Any

import pytest

from tilewright.errors import PlacementError
from tilewright.runtime.placement.policy import DPPolicy, Interleave, LayoutWord, Split


def test_a_policy_replicates_unless_it_says_otherwise() -> None:
    assert [level.layout for level in DPPolicy().levels] == [LayoutWord.REPLICATE] * 3
    assert [level.num_units for level in DPPolicy().levels] == [None] * 3


def test_a_word_and_its_layout_make_equal_policies() -> None:
    assert DPPolicy(cube="row_wise") == DPPolicy(cube=LayoutWord.ROW_WISE)
    assert DPPolicy(cube="row_wise").cube == "row_wise"


def test_levels_nest_from_sip_to_pe() -> None:
    policy = DPPolicy("row_wise", Split(1), Interleave(4096), num_sips=1, num_cubes=2, num_pes=3)
    assert [tuple(level) for level in policy.levels] == [
        ("sip", "row_wise", 1),
        ("cube", Split(1), 2),
        ("pe", Interleave(4096), 3),
    ]


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ("row_wize", "did you mean 'row_wise'?"),
        ("colum_wise", "did you mean 'column_wise'?"),
        ("nonsense", "write one of these"),
        (0, "write one of these"),
        (None, "write one of these"),
    ],
)
def test_an_unknown_layout_is_refused_with_what_was_meant(value: Any, fix: str) -> None:
    with pytest.raises(PlacementError) as caught:
        DPPolicy(cube=value)
    assert caught.value.where == "DPPolicy cube"
    assert caught.value.found == repr(value)
    assert caught.value.fix == fix


@pytest.mark.parametrize("count", [0, -1, 1.0, True, "2"])
def test_a_count_that_is_no_number_of_units_is_refused(count: Any) -> None:
    with pytest.raises(PlacementError, match=r"DPPolicy num_pes: found .* expected an int"):
        DPPolicy(num_pes=count)


@pytest.mark.parametrize("num_bytes", [0, -4096, 1.5, True])
def test_an_interleave_of_no_bytes_is_refused(num_bytes: Any) -> None:
    with pytest.raises(PlacementError, match="expected an int of at least 1"):
        Interleave(num_bytes)


@pytest.mark.parametrize("axis", [None, 0.0, "rows", True])
def test_an_axis_that_is_no_int_is_refused(axis: Any) -> None:
    with pytest.raises(PlacementError, match=r"Split: found the axis .* expected an int"):
        Split(axis)


@pytest.mark.parametrize("below", ["row_wise", "column_wise", Split(0)])
def test_blocks_of_bytes_are_not_split_by_an_axis(below: Any) -> None:
    with pytest.raises(PlacementError, match="blocks of bytes have no axes; split above"):
        DPPolicy(sip=Interleave(4096), pe=below)


def test_blocks_of_bytes_are_replicated_and_interleaved_further() -> None:
    DPPolicy(sip=Interleave(8192), cube="replicate", pe=Interleave(4096))
