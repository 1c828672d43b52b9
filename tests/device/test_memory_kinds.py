"""Tensors in every memory that programs can address: values, times, room, and what they share."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.kinds import ENGINES, needs_both_engines
from tilewright.device.build import build_device
from tilewright.device.dma import Access
from tilewright.engine import EngineKind, TaskGraph
from tilewright.errors import KernelError, OutOfMemoryError, PlacementError
from tilewright.host import DPPolicy, PeCoord, RuntimeContext
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.memory.address import MemoryKind, MemoryPlace

KINDS = list(MemoryKind)
PAGE = 65_536
HERE, BESIDE, NEXT_CUBE = PeCoord(0, 0, 0), PeCoord(0, 0, 1), PeCoord(0, 1, 0)
PACKET_PS = 2_000  # 1 KiB through a port of 512 GB/s
FLIT_PS = 125


@cache
def machine(*overrides: str) -> Machine:
    return build_machine(parse_machine("ahbm-small", overrides))


def rows_of(memory: MemoryKind | str) -> DPPolicy:
    """A row of four a page, in each memory of two PEs of two cubes."""
    return DPPolicy(num_sips=1, cube="row_wise", num_cubes=2, pe="row_wise", num_pes=2,
                    memory=memory)  # fmt: skip


def alone(memory: MemoryKind | str) -> DPPolicy:
    return DPPolicy(num_sips=1, num_cubes=1, num_pes=1, memory=memory)


def double_row(x: Any, out: Any, row: Any, tl: Any) -> None:
    places = row * 16384 + tl.arange(0, 1024)
    tl.store(out + places, tl.load(x + places) * 2)


def run_rows(kind: EngineKind, memory: MemoryKind) -> tuple[list[int], int]:
    """One PE works on rows in its own memory, its neighbour's and those of the next cube."""
    with RuntimeContext(machine(), engine=kind) as torch:
        values = np.arange(4 * 16384, dtype=np.float32).reshape(4, -1)
        x = torch.empty(values.shape, "f32", dp=rows_of(memory))
        out = torch.zeros(values.shape, "f32", dp=rows_of(memory))
        x.copy_(values)
        times = [
            torch.launch(double_row, x, out, row, grid=(1,), on=[HERE]).report.execution_ps
            for row in range(4)
        ]
        found = out.numpy()
        assert (found[:, :1024] == 2 * values[:, :1024]).all()
        assert not found[:, 1024:].any()
        return times, torch.now_ps


@needs_both_engines
@pytest.mark.parametrize("memory", KINDS)
def test_kernels_and_host_read_what_was_written_at_the_same_times_on_both_engines(
    memory: MemoryKind,
) -> None:
    assert run_rows(EngineKind.NATIVE, memory) == run_rows(EngineKind.REFERENCE, memory)


def test_what_is_nearer_takes_less_time() -> None:
    times = {memory: run_rows(EngineKind.REFERENCE, memory)[0] for memory in KINDS}
    own, beside, next_cube, last = times[MemoryKind.TCM]
    assert own < beside < next_cube < last
    own, beside, next_cube, last = times[MemoryKind.SRAM]
    assert own == beside < next_cube == last  # an SRAM is its cube's
    assert times[MemoryKind.TCM][0] < min(times[MemoryKind.SRAM][0], times[MemoryKind.HBM][0])


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("access", list(Access))
@pytest.mark.parametrize("num_packets", [1, 5, 64])
def test_an_access_to_the_own_tcm_takes_its_port_and_a_flit_beside_it(
    kind: EngineKind, access: Access, num_packets: int
) -> None:
    device = build_device(machine(), kind)
    trip = device.pe_access(HERE, HERE, access, memory=MemoryKind.TCM)
    graph = TaskGraph()
    graph.exchange(trip, 1024 * num_packets, served_effect=1)
    device.engine.submit(graph)
    device.engine.run()
    assert device.engine.take_effects() == [(num_packets * PACKET_PS, 1)]
    assert device.engine.now_ps == num_packets * PACKET_PS + FLIT_PS


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("access", list(Access))
def test_two_pes_that_want_one_tcm_share_its_port(kind: EngineKind, access: Access) -> None:
    """A slow port: it is what they wait for."""
    slow = machine("pe.tcm.read_bytes_per_us=16 GB/s", "pe.tcm.write_bytes_per_us=16 GB/s")
    ends = []
    for others in ([BESIDE], [BESIDE, PeCoord(0, 0, 2)]):
        device = build_device(slow, kind)
        graph = TaskGraph()
        for pe in others:
            trip = device.pe_access(pe, HERE, access, memory=MemoryKind.TCM)
            graph.exchange(trip, 16 * 1024)
        device.engine.submit(graph)
        device.engine.run()
        ends.append(device.engine.now_ps)
    assert ends[0] > 16 * 64_000
    assert ends[1] - ends[0] == 16 * 64_000


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("access", list(Access))
@pytest.mark.parametrize("memory", [MemoryKind.TCM, MemoryKind.SRAM])
def test_an_access_is_served_when_its_last_byte_has_crossed_the_port(
    kind: EngineKind, access: Access, memory: MemoryKind
) -> None:
    """A port that is slow against the network: requests have come long before it is done."""
    slow = machine("pe.tcm.read_bytes_per_us=16 GB/s", "pe.tcm.write_bytes_per_us=16 GB/s",
                   "cube.sram.bytes_per_us=16 GB/s")  # fmt: skip
    served, ends = [], []
    for num_packets in (1, 16):
        device = build_device(slow, kind)
        trip = device.pe_access(BESIDE, HERE, access, memory=memory)
        graph = TaskGraph()
        graph.exchange(trip, 1024 * num_packets, effect=2, served_effect=1)
        device.engine.submit(graph)
        device.engine.run()
        (served_ps, _), (end_ps, _) = device.engine.take_effects()
        served.append(served_ps)
        ends.append(end_ps)
    assert served[1] - served[0] == ends[1] - ends[0] == 15 * 64_000
    assert served[0] > 64_000


@pytest.mark.parametrize("kind", ENGINES)
def test_a_load_sees_what_is_stored_before_the_port_of_a_tcm_serves_it(kind: EngineKind) -> None:
    """A read port in use keeps the load waiting; what is stored in that time it sees."""
    slow = machine("pe.tcm.read_bytes_per_us=1 GB/s")

    def kernel(x: Any, filler: Any, far: Any, out: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:  # the owner keeps its port busy, and stores what comes from afar
            tl.load(filler + tl.arange(0, 4096))
            tl.store(x, tl.load(far))
        else:  # asks before that is there
            tl.store(out, tl.load(x))

    with RuntimeContext(slow, engine=kind) as torch:
        x = torch.zeros(1, "i32", dp=alone("tcm"))
        filler = torch.zeros(4096, "i32", dp=alone("tcm"))
        far = torch.full(1, 7, "i32", dp=alone("hbm"))
        out = torch.zeros(1, "i32", dp=alone("hbm"))
        torch.launch(kernel, x, filler, far, out, grid=(2,), on=[HERE, BESIDE])
        assert out.numpy()[0] == 7


def read_tcm(x: Any, tl: Any) -> None:
    for number in range(8):
        tl.load(x + number * 2048 + tl.arange(0, 2048))


def fetch(x: Any, tl: Any) -> None:
    """Registers are filled through the read port."""
    total = tl.load(x + tl.arange(0, 16384))
    for _ in range(8):
        total = tl.exp(total)


def test_a_read_of_the_tcm_waits_for_the_port_that_registers_are_filled_through() -> None:
    small = machine("pe.registers.capacity_bytes=1 KiB", "pe.tcm.read_bytes_per_us=4 GB/s")

    def busy(x: Any, y: Any, tl: Any) -> None:
        fetch(x, tl)
        read_tcm(y, tl)

    times = {}
    for name, kernel in (("fetch", fetch), ("read", read_tcm), ("both", busy)):
        with RuntimeContext(small, engine=EngineKind.REFERENCE) as torch:
            x = torch.empty(16384, "f32", dp=alone("hbm"))
            y = torch.empty(16384, "f32", dp=alone("tcm"))
            args = {"fetch": [x], "read": [y], "both": [x, y]}[name]
            times[name] = torch.launch(kernel, *args, grid=(1,)).report.execution_ps
    assert times["both"] > 0.9 * (times["fetch"] + times["read"])


# -- room ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("memory", "room"), [("sram", 32), ("tcm", 12)])
def test_a_full_memory_says_how_much_is_left_where_and_who_has_the_rest(
    memory: str, room: int
) -> None:
    tight = machine("cube.sram.capacity_bytes=32 MiB", "pe.tcm.capacity_bytes=16 MiB")
    with RuntimeContext(tight) as torch:
        kept = torch.empty((room - 1) * 2**20, "u8", dp=alone(memory), name="kept")
        with pytest.raises(OutOfMemoryError) as caught:
            torch.empty(2**21, "u8", dp=alone(memory), name="large")
        place = "sip0.cube0.sram" if memory == "sram" else "sip0.cube0.pe0.tcm"
        assert str(caught.value).startswith(
            f"{place}: found {2**21} bytes aligned to {PAGE} asked for by tensor 'large' "
            f"with {2**20} of {room * 2**20} free, {2**20} in one hole, "
            f"taken by tensor 'kept' ({(room - 1) * 2**20} bytes)"
        )
        kept.free()
        torch.empty(room * 2**20, "u8", dp=alone(memory), name="all")


def test_tiles_have_the_tcm_that_tensors_leave() -> None:
    def large(x: Any, tl: Any) -> None:
        tl.load(x + tl.arange(0, 2**20))

    left = 2**22 - PAGE
    torch = RuntimeContext(machine())
    x = torch.empty(2**20, "f32", dp=alone("hbm"))
    torch.launch(large, x, grid=(1,))
    most = torch.empty(2**21, "f32", dp=alone("tcm"))  # of room for three tiles, two
    torch.launch(large, x, grid=(1,))
    more = torch.empty(PAGE, "u8", dp=alone("tcm"))
    with pytest.raises(KernelError, match=rf"a tile .* with {left} of {left} bytes of the TCM"):
        torch.launch(large, x, grid=(1,))
    assert not any(tensor.is_freed for tensor in (most, more))


def test_a_tcm_full_of_tensors_has_no_room_for_a_program() -> None:
    def nothing(x: Any, tl: Any) -> None:
        del x, tl

    with RuntimeContext(machine()) as torch:
        x = torch.empty(12 * 2**20, "u8", dp=alone("tcm"))
        with pytest.raises(KernelError, match=r"sip0\.cube0\.pe0: found 12582912 of 12582912 b"):
            torch.launch(nothing, x, grid=(1,))


def test_a_memory_that_there_is_not_is_refused_with_those_there_are() -> None:
    words = "DPPolicy memory: found 'sran', expected 'hbm', 'sram', 'tcm'; did you mean 'sram'"
    with pytest.raises(PlacementError, match=words):
        DPPolicy(memory="sran")


def test_all_space_is_given_back() -> None:
    with RuntimeContext(machine()) as torch:
        for memory in KINDS:
            torch.zeros((4, 16384), "f32", dp=rows_of(memory)).free()
        places = [MemoryPlace.of(memory, pe) for memory in KINDS for pe in (HERE, NEXT_CUBE)]
        allocators = [torch.driver.memory.allocator(place) for place in places]
        assert [each.statistics.used_bytes for each in allocators] == [0] * len(places)
        assert all(each.statistics.peak_bytes for each in allocators)


# -- beside each other ---------------------------------------------------------------------------


def test_pes_of_a_cube_have_one_copy_of_a_tensor_in_its_sram_and_cubes_one_each() -> None:
    """What one PE stores its neighbour has too; another cube keeps what it had."""

    def store_own(x: Any, tl: Any) -> None:
        tl.store(x, 7)

    policy = DPPolicy(num_sips=1, num_cubes=2, num_pes=2, memory="sram")
    with RuntimeContext(machine()) as torch:
        x = torch.zeros(64, "i32", dp=policy)
        torch.launch(store_own, x, on=[BESIDE])
        assert [int(x.local(pe)[0]) for pe in (BESIDE, HERE, NEXT_CUBE)] == [7, 7, 0]
        with pytest.raises(Exception, match=r"other values in sip0\.cube1\.sram than in"):
            x.numpy()


def test_the_sanitizer_tells_memories_apart() -> None:
    """Bytes at one offset of a PE's three memories are three bytes."""

    def store_all(a: Any, b: Any, c: Any, tl: Any) -> None:
        for each in (a, b, c):
            tl.store(each + tl.arange(0, 64), 1.0)

    with RuntimeContext(machine(), sanitize=True) as torch:
        tensors = [torch.empty(64, "f32", dp=alone(memory)) for memory in KINDS]
        torch.launch(store_all, *tensors, grid=(1,))
        assert all((tensor.numpy() == 1).all() for tensor in tensors)
        assert not torch.findings


def test_the_sanitizer_finds_bytes_of_an_sram_that_nobody_has_written() -> None:
    torch = RuntimeContext(machine(), sanitize=True)
    written = torch.zeros(64, "f32", dp=alone("hbm"))
    unwritten = torch.empty(64, "f32", dp=alone("sram"), name="unwritten")
    torch.launch(add_in_place, written, unwritten, grid=(1,))
    (finding,) = torch.findings
    assert "unwritten" in finding.tensor


def add_in_place(x: Any, y: Any, tl: Any) -> None:
    places = tl.arange(0, 64)
    tl.store(x + places, tl.load(x + places) + tl.load(y + places))
