from typing import Any

import numpy as np
import pytest

from tests.collectives.worlds import machine_of_sips, run_ranks
from tilewright.collectives.group import Group, sip_ranks
from tilewright.collectives.staging import Layout, copy_group, owner_lanes
from tilewright.host import DPPolicy

LEFT, RIGHT = (range(4),), (range(4, 8),)


def layout(*boxes: tuple[range, ...]) -> Layout:
    return Layout((8,), tuple(enumerate(boxes)), DPPolicy())


def test_the_first_of_several_copies_exchanges_and_leads_the_others() -> None:
    ranks = sip_ranks(machine_of_sips(2).grid, 2)
    group = Group("some", ranks, (0, 1))
    copied = layout(LEFT, RIGHT, LEFT, RIGHT)
    assert owner_lanes(copied, 4) == {0, 1}
    copies = copy_group(group, 1, copied)
    assert copies is not None
    assert copies.ranks == (ranks[1][:2], ranks[1][2:])


@pytest.mark.parametrize("whole", [None, layout(LEFT, RIGHT), layout(LEFT, LEFT, RIGHT)])
def test_without_copies_or_with_more_of_some_every_lane_exchanges(whole: Layout | None) -> None:
    group = Group("some", sip_ranks(machine_of_sips(2).grid, 2), (0, 1))
    assert owner_lanes(whole, 4) == {0, 1, 2, 3}
    assert copy_group(group, 0, whole) is None


@pytest.mark.parametrize("num_elements", [8, 40_000])
def test_copies_are_equal_whether_they_exchange_or_are_told(num_elements: int) -> None:
    """Long ones go over the links once."""

    def program(rank: int, torch: Any, dist: Any) -> None:
        tensor = torch.full((num_elements,), rank, "f32", dp=DPPolicy())
        dist.all_reduce(tensor)
        assert np.all(tensor.numpy() == 1)  # refused if copies differ

    torch = run_ranks(2, program)
    exchanges = [report for report in torch.reports if report.name.startswith("all_reduce")]
    assert {report.num_programs for report in exchanges} == {4 if num_elements == 8 else 1}
