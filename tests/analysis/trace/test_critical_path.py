"""Critical paths of programs: exact sums, and parts that an author can predict."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import every_engine
from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.analysis.launch_path import delays_of
from tilewright.analysis.trace.critical_path import (
    OwnerTrace,
    ProgramPath,
    break_down_program,
)
from tilewright.analysis.trace.servers import ServerTable
from tilewright.device.ipcq import RingKind, RingSpec
from tilewright.engine import EngineKind
from tilewright.engine.core import OWNER_SHIFT
from tilewright.executor.neighbour import Neighbours

NO_WALKS = "pe.mmu.walk_ps=0 ns"


def paths_of(bed: Bed, launch: Callable[[], Any]) -> dict[int, ProgramPath]:
    """By owner: each PE's programs have one in a launch."""
    engine = bed.workspace.device.engine
    engine.set_trace(True)
    launch()
    rows, memory_rows = engine.take_trace_rows()
    servers = ServerTable(bed.workspace.device)
    found = {}
    for owner in np.unique(rows[:, 1] >> OWNER_SHIFT).tolist():
        trace = OwnerTrace(
            rows[rows[:, 1] >> OWNER_SHIFT == owner],
            memory_rows[memory_rows[:, 1] >> OWNER_SHIFT == owner],
        )
        delays = delays_of(bed.workspace.machine)
        path = break_down_program(trace, servers, delays, engine.now_ps)
        assert path is not None
        assert path.start_ps + sum(path.parts_ps.values()) == path.end_ps
        assert sum(path.commands_ps.values()) == sum(path.parts_ps.values())
        assert min(path.commands_ps.values()) >= 0
        found[owner] = path
    return found


def only_path(bed: Bed, kernel: Any, *args: Any, **kwargs: Any) -> dict[str, int]:
    """Of the one program of a launch; it starts at 0 and ends when the launch does."""
    (path,) = paths_of(bed, lambda: bed.launch(kernel, *args, **kwargs)).values()
    assert (path.start_ps, path.end_ps) == (0, bed.workspace.device.engine.now_ps)
    return {part: time_ps for part, time_ps in path.parts_ps.items() if time_ps}


def double(x: Any, num: int) -> None:
    for step in range(num):
        places = step * 64 + tl.arange(0, 64)
        tl.store(x + places, tl.load(x + places) * 2.0)


def products(x: Any, num: int) -> None:
    block = tl.load(x, shape=(64, 64))
    for _ in range(num):
        block = tl.dot(block, block)
    tl.store(tl.ref(x, (64, 64)), block)


@every_engine
def test_the_parts_of_a_chain_of_products_are_the_products(kind: EngineKind) -> None:
    bed = Bed(engine=kind)
    parts = only_path(bed, products, bed.place(np.zeros((64, 64), np.float32)), num=9)
    more = Bed(engine=kind)
    many = only_path(more, products, more.place(np.zeros((64, 64), np.float32)), num=19)
    grown = {part for part in many if many[part] != parts.get(part)}
    assert grown == {"gemm", "issue"}
    assert 9 * (many["gemm"] - parts["gemm"]) == 10 * parts["gemm"]
    scheduler_ps = bed.workspace.machine.spec.pe.scheduler.command_ps
    assert many["issue"] - parts["issue"] == 10 * scheduler_ps


def test_a_program_without_walks_has_no_translation() -> None:
    bed, free = Bed(), Bed(NO_WALKS)
    values = np.zeros(64, np.float32)
    parts = only_path(bed, double, bed.place(values), num=1)
    assert parts.pop("translation") == bed.workspace.machine.spec.pe.mmu.walk_ps
    assert only_path(free, double, free.place(values), num=1) == parts


def test_dependent_accesses_are_reads_and_writes_in_turn() -> None:
    """Every load comes after the store to the same place."""

    def kernel(x: Any, num: int) -> None:
        for _ in range(num):
            tl.store(x, tl.load(x) + 1.0)

    bed = Bed("cube.hbm.refresh.interval_ps=1000 us")
    parts = only_path(bed, kernel, bed.place(np.zeros(1, np.float32)), num=20)
    assert set(parts) == {
        "issue", "memory_read", "memory_write", "tcm_port", "translation", "vector",
    }  # fmt: skip
    adding_ps, rest_ps = divmod(parts["vector"], 20)
    assert (adding_ps > 0, rest_ps) == (True, 0)


def test_a_stream_of_loads_is_bound_by_its_reads() -> None:
    def kernel(x: Any, num: int) -> None:
        for step in range(num):
            tl.load(x + step * 16_384 + tl.arange(0, 16_384))

    bed = Bed()
    parts = only_path(bed, kernel, bed.place(np.zeros(2**20, np.float32)), num=64)
    reading_ps = parts["memory_read"] + parts.get("link_queueing", 0) + parts.get("refresh", 0)
    assert reading_ps > 0.95 * sum(parts.values())


def send_late(x: Any, y: Any, work: int) -> None:
    """The first program computes for long, then sends; the second only receives."""
    if tl.program_id(0) == 0:
        block = tl.load(x, shape=(64, 64))
        for _ in range(work):
            block = tl.dot(block, block)
        tl.send("E", block)
    else:
        tl.store(tl.ref(y, (64, 64)), tl.recv("W", (64, 64), tl.float32))


@pytest.mark.parametrize("kind", RingKind)
def test_a_receiver_waits_for_its_sender(kind: RingKind) -> None:
    bed = Bed(num_pes=2)
    first, second = bed.pes
    ring = RingSpec(kind, 4, 16_384)
    addresses = {(second, "W"): 2**20, (first, "E"): 2**21}
    told = Neighbours({first: {"E": second}, second: {"W": first}}, ring, addresses)
    x, y = (bed.place(np.zeros((64, 64), np.float32)) for _ in range(2))
    launch = {"grid": (2,), "neighbours": told, "work": 40}
    paths = paths_of(bed, lambda: bed.launch(send_late, x, y, **launch))
    sender, receiver = paths[0].parts_ps, paths[1].parts_ps
    assert receiver["message_wait"] > sender["gemm"] > 0
    assert "gemm" not in receiver
    assert sender.get("message_wait", 0) == 0
    assert sender["message"] > 0
    assert paths[1].end_ps > paths[0].end_ps - sender["message"]


def composite(a: Any, b: Any, out: Any, tile: tuple[int, int, int]) -> None:
    tl.composite("gemm", tl.ref(a, (64, 64)), tl.ref(b, (64, 64)), out, tile_shape=tile)


def test_a_composite_is_one_command_of_many_parts() -> None:
    bed = Bed()
    arrays = [bed.place(np.zeros((64, 64), np.float32)) for _ in range(3)]
    parts = only_path(bed, composite, *arrays, tile=(32, 32, 32))
    assert {"memory_read", "gemm", "memory_write", "tcm_port"} <= set(parts)
    assert parts.get("other", 0) == 0


@st.composite
def kernels(draw: st.DrawFn) -> Callable[..., None]:
    """Loads, computations and stores of a few places, in any order."""
    steps = draw(
        st.lists(
            st.tuples(st.sampled_from(["load", "add", "dot", "store", "ask"]), st.integers(0, 3)),
            min_size=1,
            max_size=24,
        )
    )

    def kernel(x: Any) -> None:
        blocks = [tl.zeros((32, 32), tl.float32) for _ in range(4)]
        rows = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
        for step, place in steps:
            if step == "load":
                blocks[place] = tl.load(x + place * 1024 + rows)
            elif step == "add":
                blocks[place] = blocks[place] + blocks[place - 1]
            elif step == "dot":
                blocks[place] = tl.dot(blocks[place], blocks[place - 1])
            elif step == "store":
                tl.store(x + place * 1024 + rows, blocks[place])
            elif float(tl.sum(tl.sum(blocks[place], 1), 0)) > 0:
                blocks[place] = -blocks[place]

    return kernel


@settings(max_examples=40)
@given(kernel=kernels(), num_pes=st.integers(1, 3))
def test_the_path_of_any_program_explains_all_of_its_time(
    kernel: Callable[..., None], num_pes: int
) -> None:
    bed = Bed(num_pes=num_pes)
    x = bed.place(np.ones(4096, np.float32))
    for path in paths_of(bed, lambda: bed.launch(kernel, x, grid=(num_pes,))).values():
        assert path.start_ps == 0
        assert path.parts_ps.get("other", 0) == 0
        assert path.parts_ps.get("message_wait", 0) == 0
