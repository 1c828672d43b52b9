"""Rings that ``install_ipcq`` installs, and launches that use them by the names of directions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import language as tl
from tilewright.device.ipcq import RingKind, RingSpec
from tilewright.errors import TilewrightError
from tilewright.executor.neighbour import Neighbours
from tilewright.host import DPPolicy, LocalShard, PeCoord, RuntimeContext
from tilewright.machine import build_machine, parse_machine
from tilewright.memory.address import MemoryKind, MemoryPlace

FOUR = [(0, 0, pe) for pe in range(4)]
ALL_PES = DPPolicy(cube="row_wise", pe="row_wise")
ONE_CUBE = DPPolicy(pe="row_wise", num_cubes=1)


def rows_of(torch: RuntimeContext, count: int, dp: DPPolicy) -> Any:
    values = np.arange(count * 8, dtype=np.float32).reshape(count, 8)
    return torch.empty(values.shape, "f32", dp=dp).copy_(torch.from_numpy(values))


def pass_on(x: Any, to: Any, source: Any) -> None:
    """Send the own row in one direction and keep what arrives from another."""
    row = tl.load(x, shape=(1, 8))
    tl.send(to, row)
    tl.store(tl.ref(x, (1, 8)), tl.recv(source, (1, 8), tl.float32))


@pytest.mark.parametrize("kind", ["tcm", "sram", "hbm"])
def test_a_launch_uses_the_rings_that_were_installed_before_it(kind: str) -> None:
    with RuntimeContext("ahbm-small", device="sip:0") as torch:
        x = rows_of(torch, 16, ALL_PES)
        before = x.numpy()
        torch.install_ipcq("ring", buffer_kind=kind)  # all PEs of the device are ranks
        torch.launch(pass_on, LocalShard(x), "E", "W")
        np.testing.assert_array_equal(x.numpy(), np.roll(before, 1, axis=0))


@pytest.mark.parametrize(
    ("direction", "source", "order"),
    [("E", "W", [1, 0, 3, 2]), ("W", "E", [1, 0, 3, 2]), ("S", "N", [2, 3, 0, 1])],
)
def test_a_torus_has_directions_by_columns_and_rows(
    direction: str, source: str, order: list[int]
) -> None:
    with RuntimeContext("ahbm-small", device="sip:0") as torch:
        x = rows_of(torch, 4, ONE_CUBE)
        before = x.numpy()
        torch.install_ipcq("ring", rank_to_pe=FOUR, topology="torus_2d", w=2, h=2)
        torch.launch(pass_on, LocalShard(x), direction, source)
        np.testing.assert_array_equal(x.numpy(), before[order])


def test_a_tree_has_parents_and_children() -> None:
    def add_up(x: Any) -> None:
        total = tl.load(x, shape=(1, 8))
        rank = tl.program_id(0)
        if rank == 0:
            total = total + tl.recv("child_left", (1, 8), tl.float32)
            total = total + tl.recv("child_right", (1, 8), tl.float32)
            tl.store(tl.ref(x, (1, 8)), total)
        else:
            if rank == 1:
                total = total + tl.recv("child_left", (1, 8), tl.float32)
            tl.send("parent", total)

    with RuntimeContext("ahbm-small", device="sip:0") as torch:
        x = rows_of(torch, 4, ONE_CUBE)
        before = x.numpy()
        torch.install_ipcq("ring", rank_to_pe=FOUR, topology="tree_binary")
        torch.launch(add_up, LocalShard(x))
        np.testing.assert_array_equal(x.numpy()[0], before.sum(axis=0))


def test_a_rank_is_a_direction_and_its_ring_is_the_one_of_the_topology() -> None:
    def by_rank(x: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send("rank1", tl.load(x, shape=(1, 8)))
        if tl.program_id(0) == 1:
            tl.store(tl.ref(x, (1, 8)), tl.recv("W", (1, 8), tl.float32))

    with RuntimeContext("ahbm-small", device="sip:0") as torch:
        x = rows_of(torch, 4, ONE_CUBE)
        before = x.numpy()
        torch.install_ipcq("ring", rank_to_pe=FOUR)
        torch.launch(by_rank, LocalShard(x))
        np.testing.assert_array_equal(x.numpy(), before[[0, 0, 2, 3]])


def test_a_second_world_leaves_the_first_one_as_it_is() -> None:
    with RuntimeContext("ahbm-small", device="sip:0") as torch:
        x = rows_of(torch, 4, ONE_CUBE)
        before = x.numpy()
        forward = torch.install_ipcq("ring", rank_to_pe=FOUR)
        torch.install_ipcq("ring", rank_to_pe=FOUR[::-1])  # east is now where west was
        torch.launch(pass_on, LocalShard(x), "E", "W")
        np.testing.assert_array_equal(x.numpy(), np.roll(before, -1, axis=0))
        torch.launch(pass_on, LocalShard(x), "E", "W", neighbours=forward)
        np.testing.assert_array_equal(x.numpy(), before)


def test_a_message_that_a_launch_leaves_is_received_by_the_next_one() -> None:
    def send_only(x: Any) -> None:
        tl.send("E", tl.load(x, shape=(1, 8)))

    def receive_only(x: Any) -> None:
        tl.store(tl.ref(x, (1, 8)), tl.recv("W", (1, 8), tl.float32))

    with RuntimeContext("ahbm-small", device="sip:0") as torch:
        x = rows_of(torch, 4, ONE_CUBE)
        before = x.numpy()
        torch.install_ipcq("ring", rank_to_pe=FOUR)
        torch.launch(send_only, LocalShard(x))
        torch.launch(receive_only, LocalShard(x))
        np.testing.assert_array_equal(x.numpy(), np.roll(before, 1, axis=0))


def test_a_direction_that_the_topology_does_not_name_is_refused() -> None:
    with RuntimeContext("ahbm-small", device="sip:0") as torch:
        x = rows_of(torch, 4, ONE_CUBE)
        torch.install_ipcq("ring", rank_to_pe=FOUR)
        with pytest.raises(TilewrightError, match=r"'N'.*E.*W"):
            torch.launch(pass_on, LocalShard(x), "N", "S")


def test_rings_have_the_size_that_their_messages_need(tmp_path: Path) -> None:
    file = tmp_path / "ccl.yaml"
    file.write_text("defaults:\n  topology: ring_1d\n  n_elem: 32\n  dtype: f16\n")
    with RuntimeContext("ahbm-small", device="sip:0") as torch:
        ring = torch.install_ipcq("ring", file).neighbours.ring
        assert (ring.slots, ring.slot_bytes) == (4, 64)


def test_global_directions_lead_to_the_same_pe_of_other_sips() -> None:
    machine = build_machine(parse_machine("ahbm-small", ["sip.count=2"]))
    with RuntimeContext(machine) as torch:
        x = rows_of(torch, 32, DPPolicy(sip="row_wise", cube="row_wise", pe="row_wise"))
        before = x.numpy()
        plan = torch.install_ipcq("ring", topology="none", global_topology="ring_1d")
        assert plan.directions_of(3) == {"global_E": 19, "global_W": 19, "rank19": 19}
        torch.launch(pass_on, LocalShard(x), "global_E", "global_W")
        np.testing.assert_array_equal(x.numpy(), np.roll(before, 16, axis=0))


def test_a_second_launch_on_the_same_rings_waits_its_turn_or_is_refused() -> None:
    torch = RuntimeContext("ahbm-small", device="sip:0")
    x, y = rows_of(torch, 4, ONE_CUBE), rows_of(torch, 4, ONE_CUBE)
    torch.install_ipcq("ring", rank_to_pe=FOUR)
    torch.launch(pass_on, LocalShard(x), "E", "W", wait=False)
    with pytest.raises(TilewrightError, match=r"installed rings of .* one program at a time"):
        torch.launch(pass_on, LocalShard(y), "E", "W")
    with RuntimeContext("ahbm-small", device="sip:0") as torch:
        x = rows_of(torch, 4, ONE_CUBE)
        before = x.numpy()
        torch.install_ipcq("ring", rank_to_pe=FOUR)
        for _ in range(2):
            torch.launch(pass_on, LocalShard(x), "E", "W")
        np.testing.assert_array_equal(x.numpy(), np.roll(before, 2, axis=0))


@pytest.mark.parametrize("kind", [RingKind.SRAM, RingKind.HBM, RingKind.TCM])
def test_rings_of_a_launch_get_memory_without_addresses_and_give_it_back(kind: RingKind) -> None:
    pes = [PeCoord(*place) for place in FOUR]
    table = {pe: {"E": pes[(at + 1) % 4], "W": pes[at - 1]} for at, pe in enumerate(pes)}
    with RuntimeContext("ahbm-small", device="sip:0") as torch:
        x = rows_of(torch, 4, ONE_CUBE)
        before, places = x.numpy(), [MemoryPlace.of(MemoryKind.SRAM, pes[0]),
                                     MemoryPlace(MemoryKind.HBM, pes[1])]  # fmt: skip
        books = [torch.driver.memory.allocator(place) for place in places]
        used = [book.statistics.used_bytes for book in books]
        for _ in range(2):
            ring = RingSpec(kind, slots=2, slot_bytes=16)
            torch.launch(pass_on, LocalShard(x), "E", "W", neighbours=Neighbours(table, ring))
        np.testing.assert_array_equal(x.numpy(), np.roll(before, 2, axis=0))
        assert [book.statistics.used_bytes for book in books] == used
        peak = max(book.statistics.peak_bytes - was for book, was in zip(books, used, strict=True))
        assert (peak > 0) == (kind is not RingKind.TCM)
