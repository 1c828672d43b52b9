"""Critical paths by field: every picosecond has its field, and messages lead to their senders."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.trace.test_critical_path import kernels, send_late
from tests.kinds import every_engine
from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.analysis.launch_path import delays_of
from tilewright.analysis.trace.critical_path import OwnerTrace, break_down_program
from tilewright.analysis.trace.fields import PathFields, Traces, fields_of_path
from tilewright.analysis.trace.servers import ServerTable
from tilewright.device.ipcq import RingKind, RingSpec
from tilewright.engine import EngineKind
from tilewright.engine.core import OWNER_SHIFT
from tilewright.executor.neighbour import Neighbours

GEMM = "pe.gemm.hz"
NUM_PRODUCTS = 6


class Found(NamedTuple):
    """What a path is made of, and its length by the rules inside a program."""

    fields: PathFields
    end_ps: int


def found_by_owner(
    bed: Bed, launch: Callable[[], Any], *, is_alone: bool = False
) -> dict[int, Found]:
    """Of each owner of a launch; alone, it is all that the trace has."""
    engine = bed.workspace.device.engine
    engine.set_trace(True)
    launch()
    rows, memory_rows = engine.take_trace_rows()
    found = {}
    for owner in np.unique(rows[:, 1] >> OWNER_SHIFT).tolist():
        own = OwnerTrace(
            rows[rows[:, 1] >> OWNER_SHIFT == owner],
            memory_rows[memory_rows[:, 1] >> OWNER_SHIFT == owner],
        )
        traced = own if is_alone else OwnerTrace(rows, memory_rows)
        servers, delays = ServerTable(bed.workspace.device), delays_of(bed.workspace.machine)
        traces = Traces(traced.rows, traced.memory_rows, servers)
        fields = fields_of_path(traces, owner, delays, engine.now_ps)
        path = break_down_program(own, servers, delays, engine.now_ps)
        assert path is not None
        assert path.start_ps == 0
        found[owner] = Found(fields, path.end_ps)
    return found


def total_ps(fields: PathFields) -> int:
    known_ps = fields.work_ps.total() + fields.queue_ps.total()
    return known_ps + fields.refresh_ps + fields.unknown_ps


@settings(max_examples=25)
@given(kernel=kernels(), num_pes=st.integers(1, 3))
def test_every_picosecond_of_a_path_has_its_field(
    kernel: Callable[..., None], num_pes: int
) -> None:
    bed = Bed(num_pes=num_pes)
    x = bed.place(np.ones(4096, np.float32))
    found = found_by_owner(bed, lambda: bed.launch(kernel, x, grid=(num_pes,)))
    for fields, end_ps in found.values():
        assert total_ps(fields) == end_ps
        assert fields.unknown_ps == 0
        assert fields.least_ps.total() <= end_ps


def products(x: Any, y: Any, num: int) -> None:
    """Products that wait for nothing but the unit, once both blocks are there."""
    one, other = tl.load(x, shape=(64, 64)), tl.load(y, shape=(64, 64))
    results = [tl.dot(one, other) for _ in range(num)]
    tl.store(tl.ref(x, (64, 64)), results[-1])


@every_engine
def test_the_least_time_goes_through_what_held_a_unit(kind: EngineKind) -> None:
    """The last product waits for all others, and no run does them in less than their time."""
    bed = Bed(engine=kind)
    arrays = [bed.place(np.zeros((64, 64), np.float32)) for _ in range(2)]
    launch = partial(bed.launch, products, *arrays, num=NUM_PRODUCTS)
    ((fields, _),) = found_by_owner(bed, launch).values()
    gemm = bed.workspace.machine.spec.pe.gemm
    cycles = (64 // 16) ** 3 * 4 + 16  # f32 takes four times as long; and the fill
    service_ps = cycles * 10**12 // gemm.hz
    assert fields.least_ps[GEMM] == NUM_PRODUCTS * service_ps
    assert service_ps < fields.work_ps[GEMM] <= NUM_PRODUCTS * service_ps


def ring_launch(bed: Bed, kind: RingKind) -> Callable[[], Any]:
    first, second = bed.pes
    ring = RingSpec(kind, 4, 16_384)
    addresses = {(second, "W"): 2**20, (first, "E"): 2**21}
    told = Neighbours({first: {"E": second}, second: {"W": first}}, ring, addresses)
    x, y = (bed.place(np.zeros((64, 64), np.float32)) for _ in range(2))
    return lambda: bed.launch(send_late, x, y, grid=(2,), neighbours=told, work=40)


@every_engine
@pytest.mark.parametrize("ring", RingKind)
def test_a_path_goes_on_at_the_sender_of_a_message(kind: EngineKind, ring: RingKind) -> None:
    bed = Bed(num_pes=2, engine=kind)
    (sender, _), (receiver, end_ps) = found_by_owner(bed, ring_launch(bed, ring)).values()
    assert receiver.unknown_ps == 0
    assert receiver.work_ps[GEMM] == sender.work_ps[GEMM] > 0
    assert receiver.least_ps[GEMM] == sender.least_ps[GEMM]
    assert total_ps(receiver) == end_ps


def test_a_path_whose_sender_was_not_traced_ends_in_waiting() -> None:
    bed = Bed(num_pes=2)
    _, (receiver, _) = found_by_owner(bed, ring_launch(bed, RingKind.TCM), is_alone=True).values()
    assert receiver.work_ps[GEMM] == 0
    assert receiver.unknown_ps > total_ps(receiver) / 2
