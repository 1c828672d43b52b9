from itertools import pairwise
from pathlib import Path

import pytest

from tilewright.errors import CollectiveError
from tilewright.host import RuntimeContext
from tilewright.machine.coords import PeCoord


def test_rings_are_sent_over_the_fabric_once() -> None:
    with RuntimeContext("ahbm-small") as torch:
        first = torch.install_ipcq("ring", rank_to_pe=[(0, 0, 0), (0, 0, 1), (0, 1, 0)])
        after_ps = torch.now_ps
        again = torch.install_ipcq("ring", rank_to_pe=[(0, 0, 0), (0, 0, 1), (0, 1, 0)])
        assert after_ps > 0
        assert (again is first, torch.now_ps) == (True, after_ps)
        assert [pes[0] for pes in first.ranks] == [
            PeCoord(0, 0, 0),
            PeCoord(0, 0, 1),
            PeCoord(0, 1, 0),
        ]
        assert first.num_rings == 6


def test_two_ranks_that_are_each_others_both_neighbours_have_a_ring_each_way() -> None:
    with RuntimeContext("ahbm-small") as torch:
        plan = torch.install_ipcq("ring", rank_to_pe=[(0, 0, 0), (0, 0, 1)])
        assert plan.num_rings == 2


def test_rings_in_memories_have_places_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "ccl.yaml"
    file.write_text("defaults:\n  buffer_kind: sram\n")
    with RuntimeContext("ahbm-small") as torch:
        places = [(0, 0, pe) for pe in range(4)]
        plan = torch.install_ipcq("direct", str(file), rank_to_pe=places)
        addresses = sorted(plan.neighbours.addresses.values())
        assert all(b - a >= 16384 for a, b in pairwise(addresses))


def test_a_map_that_does_not_fit_the_world_is_refused() -> None:
    with (
        RuntimeContext("ahbm-small") as torch,
        pytest.raises(CollectiveError, match="2 ranks for 3"),
    ):
        torch.install_ipcq(world_size_override=3, rank_to_pe=[(0, 0, 0), (0, 0, 1)])


def test_an_algorithm_that_nobody_has_is_refused() -> None:
    with RuntimeContext("ahbm-small") as torch, pytest.raises(CollectiveError, match="rign"):
        torch.install_ipcq("rign")
