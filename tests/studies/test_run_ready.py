"""Ready programs, run and explained on the machine that they are written for."""

import pytest

from tilewright.engine import AUTO, native_built, resolve_engine
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.studies.run.command import RunWatch, run_program
from tilewright.studies.run.execute import RunRequest
from tilewright.studies.run.source import find_source


@pytest.fixture(scope="module")
def machine() -> Machine:
    return build_machine(parse_machine("ahbm"))


@pytest.mark.parametrize(
    "name", ["qkv_gemm", "gemm_single_pe", "va_offset_verify", "pointer_chase", "quest_decode"]
)
def test_the_time_of_a_ready_program_is_explained_to_the_last_picosecond(
    machine: Machine, name: str
) -> None:
    source = find_source(name)
    parameters = {each.name: each.default for each in source.parameters}
    kind = resolve_engine(AUTO, native_built=native_built())
    record = run_program(
        RunRequest(source, parameters, machine, source.machine, engine=kind), RunWatch()
    )
    assert record.ok
    assert record.values_ok is True
    assert record.bound_ps is not None
    assert record.latency_ps >= record.bound_ps
    parts = record.breakdown_ps
    assert (parts.other, parts.execution, parts.total_ps) == (0, 0, record.latency_ps)
    assert sum(record.lines_ps.values()) <= record.latency_ps
    assert record.lines_ps


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("ring_attention", {"length": 256}), ("decode_merge", {"context": 512, "cubes": 2})],
)
def test_the_time_of_programs_that_send_messages_is_explained_too(
    name: str, sizes: dict[str, int]
) -> None:
    source = find_source(name)
    heads = {"q_heads": 4, "kv_heads": 2, "head_dim": 32}
    parameters = {each.name: each.default for each in source.parameters} | heads | sizes
    small = build_machine(parse_machine("ahbm-small"))
    kind = resolve_engine(AUTO, native_built=native_built())
    record = run_program(
        RunRequest(source, parameters, small, "ahbm-small", engine=kind), RunWatch()
    )
    assert record.values_ok is True
    parts = record.breakdown_ps
    assert (parts.other, parts.execution, parts.total_ps) == (0, 0, record.latency_ps)
    assert parts.message_wait > 0
