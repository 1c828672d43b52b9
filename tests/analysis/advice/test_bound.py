"""No run with a changed machine is shorter than advice says: random programs and machines."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tilewright.analysis.advice.bound import shortest_ps
from tilewright.analysis.advice.change import INTERLEAVE, WINDOW, change_of, single_changes
from tilewright.engine import EngineKind
from tilewright.machine.build import phase_shift_ps
from tilewright.studies.run.execute import execute
from tilewright.validation.advice import trial_of

MACHINE = "ahbm-small"
NUM_CHANGES = 4
NUM_PHASES = 7
BUFFERS = ["tcm", "sram", "hbm"]
PROGRAMS: dict[str, dict[str, list[Any]]] = {
    "matmul": {
        "m": [32, 64], "k": [64, 128], "n": [64], "pes": [1, 2], "tile_m": [32], "tile_n": [32],
        "tile_k": [32, 64], "staging": ["ref/ref", "load/ref", "ref/load", "load/load"],
    },
    "softmax": {"rows": [8, 64], "columns": [128, 1024], "block_rows": [1, 8], "pes": [1, 4]},
    "stream": {"elements": [4096, 32768], "block": [512], "pes": [1, 4]},
    "pointer_chase": {"hops": [8], "where": ["local", "same_cube", "next_cube", "far_cube"]},
    "allreduce_ring": {"ranks": [2, 5], "bytes": [256, 8192], "buffer": BUFFERS},
    "allreduce_tree": {"bytes": [256, 8192], "buffer": BUFFERS},
    "allreduce_mesh": {"bytes": [256, 8192], "buffer": BUFFERS},
    "va_offset_verify": {},
}  # fmt: skip
OVERRIDES = (
    "cube.hbm.refresh.kind=none",
    "cube.hbm.refresh.kind=per_bank",
    "cube.hbm.model=simple",
    "cube.hbm.interleave_bytes=1024",
    "cube.noc.attach_bytes_per_us=128000",
    "cube.noc.bytes_per_us=64000",
    "pe.gemm.hz=4000000000",
    "pe.vector.lanes=64",
    "pe.tcm.read_bytes_per_us=64000",
    "pe.dma.in_flight_bytes=2048",
    "pe.queue_commands=4",
    "pe.mmu.walk_ps=400000",
    "cube.hbm.timing.clock_ps=2000",
    "sip.io_cpu.command_ps=1000",
)


@st.composite
def runs(draw: st.DrawFn) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    program = draw(st.sampled_from(sorted(PROGRAMS)))
    parameters = {name: draw(st.sampled_from(each)) for name, each in PROGRAMS[program].items()}
    overrides = draw(st.lists(st.sampled_from(OVERRIDES), max_size=2, unique=True))
    return program, parameters, tuple(overrides)


@needs_both_engines  # the reference engine takes too long
@pytest.mark.timeout(1200)
@settings(max_examples=settings().max_examples // 3)
@given(run=runs(), data=st.data())
def test_no_changed_run_is_shorter_than_any_can_be(
    run: tuple[str, dict[str, Any], tuple[str, ...]], data: st.DataObject
) -> None:
    program, parameters, overrides = run
    trial = trial_of(EngineKind.NATIVE, program, MACHINE, overrides, parameters, phases=1)
    fields = trial.record.machine.fields
    others = [change_of(name, fields) for name in (INTERLEAVE, WINDOW)]
    changes = [*single_changes(fields), *(change for change in others if change is not None)]
    for change in data.draw(
        st.lists(st.sampled_from(changes), min_size=NUM_CHANGES, max_size=NUM_CHANGES, unique=True)
    ):
        shift_ps = phase_shift_ps(
            trial.meter.request.machine.spec, data.draw(st.integers(0, NUM_PHASES - 1)), NUM_PHASES
        )
        changed = trial.meter.changed(f"{change.field}={change.value}")
        found = execute(
            replace(changed, refresh_shift_ps=shift_ps), lambda _: ((), None), is_silent=True
        )
        assert found.latency_ps >= shortest_ps(trial.record, change), change.option
