from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tilewright.collectives.rings import InstallPlan, check_install
from tilewright.collectives.tuning import RingKeys
from tilewright.device.ipcq import RingKind, RingSpec
from tilewright.errors import CollectiveError
from tilewright.executor.neighbour import Neighbours
from tilewright.host import RuntimeContext
from tilewright.machine.build import build_machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.parse import parse_machine

LARGE: RingKeys = {"n_slots": 4, "slot_size": 4096}  # 16 KiB a ring, more than small calls need


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


def test_two_ranks_in_a_ring_have_two_rings_each_way_unless_they_have_no_directions() -> None:
    with RuntimeContext("ahbm-small") as torch:
        pair = [(0, 0, 0), (0, 0, 1)]
        assert torch.install_ipcq("ring", rank_to_pe=pair).num_rings == 4
        assert torch.install_ipcq("ring", rank_to_pe=pair, topology="none").num_rings == 2


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
            torch.distributed.init_process_group(rank_to_pe=places, algorithm=algorithm, **LARGE)
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


def plan_of(table: dict[int, dict[str, int]], addresses: dict[tuple[int, str], int]) -> InstallPlan:
    """Of PEs by number, with rings of two slots of 64 bytes in HBM."""
    pes = [PeCoord(0, 0, number) for number in range(3)]
    neighbours = Neighbours(
        {pes[pe]: {way: pes[peer] for way, peer in ways.items()} for pe, ways in table.items()},
        RingSpec(RingKind.HBM, slots=2, slot_bytes=64),
        {(pes[pe], way): address for (pe, way), address in addresses.items()},
    )
    return InstallPlan("some", tuple((pe,) for pe in pes), neighbours)


def test_a_direction_without_a_way_back_is_refused() -> None:
    there = {0: {"E": 1}, 1: {"E": 2}, 2: {"W": 1}}
    with pytest.raises(CollectiveError, match=r"'E' of sip0\.cube0\.pe0 to .*pe1, not back"):
        check_install(plan_of(there, {}))


@pytest.mark.parametrize("second", [0, 64, 127])
def test_rings_that_share_a_byte_are_refused(second: int) -> None:
    both = {0: {"E": 1, "W": 1}, 1: {"E": 0, "W": 0}}
    apart = {(1, "E"): 0, (1, "W"): 128, (0, "E"): 0}
    check_install(plan_of(both, apart))
    with pytest.raises(CollectiveError, match="in the bytes of another ring"):
        check_install(plan_of(both, {**apart, (1, "W"): second}))


def test_rings_keep_what_a_rank_that_has_left_the_call_sent() -> None:
    """The root of a broadcast is done; the others have not come for what lies in their rings."""
    machine = build_machine(parse_machine("ahbm-small", ("pe.tcm.reserved_bytes=49152",)))
    torch = RuntimeContext(machine)
    dist = torch.distributed

    def worker(rank: int) -> None:
        places = [(0, 0, pe) for pe in range(4)]
        dist.init_process_group(rank_to_pe=places, algorithm="direct", **LARGE)
        pair = dist.new_group([0, 1])
        tensor = torch.from_numpy(np.full(5, rank, np.float32))
        if rank == 0:
            dist.broadcast(tensor, src=0)
            dist.all_reduce(tensor, group=pair)
        elif rank == 1:
            torch.driver.hub.sleep(50_000_000)
            dist.all_reduce(tensor, group=pair)

    with pytest.raises(CollectiveError, match="room for rings that are in use"):
        torch.multiprocessing.spawn(worker, nprocs=4)


def test_two_groups_do_not_take_turns_in_the_room_of_one_ring() -> None:
    """Two pairs have called before a program of either runs; PE 0 has room for one ring."""
    machine = build_machine(parse_machine("ahbm-small", ("pe.tcm.reserved_bytes=16384",)))
    torch = RuntimeContext(machine)
    dist = torch.distributed

    def worker(rank: int) -> None:
        places = [(0, 0, pe) for pe in range(3)]
        dist.init_process_group(rank_to_pe=places, algorithm="ring", **LARGE)
        pairs = [dist.new_group([0, 1]), dist.new_group([0, 2])]
        works = [
            dist.all_reduce(torch.from_numpy(np.ones(5)), group=pair, async_op=True)
            for pair in (pairs if rank == 0 else [pairs[rank - 1]])
        ]
        for work in works:
            assert work is not None
            work.wait()

    with pytest.raises(CollectiveError, match="room for rings that are in use"):
        torch.multiprocessing.spawn(worker, nprocs=3)


def test_a_file_says_how_many_ranks_an_algorithm_has(tmp_path: Path) -> None:
    file = tmp_path / "ccl.yaml"
    file.write_text("algorithms:\n  ring:\n    world_size: 5\n")
    with RuntimeContext("ahbm-small") as torch:
        ranks = torch.install_ipcq("ring", str(file)).ranks
        assert ranks == tuple((torch.machine.grid.coord(flat),) for flat in range(5))
        assert len(torch.install_ipcq("ring").ranks) == torch.machine.grid.num_pes
