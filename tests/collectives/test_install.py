from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tilewright.errors import CollectiveError
from tilewright.host import RuntimeContext
from tilewright.machine.build import build_machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.parse import parse_machine


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


def test_rings_that_nobody_uses_make_way_for_those_of_other_calls() -> None:
    machine = build_machine(parse_machine("ahbm-small", ("pe.tcm.reserved_bytes=65536",)))
    algorithms = ("direct", "ring", "double_tree", "direct")
    with RuntimeContext(machine) as torch:

        def worker(rank: int, algorithm: str) -> None:
            places = [(0, 0, pe) for pe in range(4)]
            torch.distributed.init_process_group(rank_to_pe=places, algorithm=algorithm)
            tensor = torch.from_numpy(np.full(5, rank, np.float32))
            torch.distributed.all_reduce(tensor)
            assert tensor.tolist() == [6.0] * 5

        for algorithm in algorithms:  # three rings of 16 KiB at a PE in the first of them alone
            torch.multiprocessing.spawn(worker, args=(algorithm,), nprocs=4)
        assert 0 < len(torch.distributed.book.plans) < len(algorithms)


def test_rings_that_the_user_has_installed_stay_and_others_are_refused() -> None:
    machine = build_machine(parse_machine("ahbm-small", ("pe.tcm.reserved_bytes=65536",)))
    places = [(0, 0, pe) for pe in range(4)]
    with RuntimeContext(machine) as torch:
        torch.install_ipcq("direct", rank_to_pe=places)
        with pytest.raises(CollectiveError, match="room for rings that are in use"):
            torch.install_ipcq("ring", rank_to_pe=places)
