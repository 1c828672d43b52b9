"""All-reduce of one tile a PE over rings, meshes and trees of any size."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tests.programs.small import MACHINE, run_small
from tilewright.engine import EngineKind
from tilewright.errors import BenchError
from tilewright.host import RuntimeContext
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.programs import PROGRAMS

MATRIX: dict[str, tuple[str, Mapping[str, Any]]] = {
    "ring, slots in TCM, 8 PEs": ("allreduce_ring", {"buffer": "tcm"}),
    "ring, slots in HBM, 8 PEs": ("allreduce_ring", {"buffer": "hbm"}),
    "ring, slots in SRAM, 8 PEs": ("allreduce_ring", {"buffer": "sram"}),
    "ring over two cubes": ("allreduce_cubes", {}),
    "mesh of 2 x 2": ("allreduce_mesh", {}),
    "binary tree on 7": ("allreduce_tree", {}),
}
"""The cases of the all-reduce matrix, at their defaults."""


@pytest.mark.parametrize("machine", ["ahbm", "ahbm-small"])
@pytest.mark.parametrize("case", MATRIX)
def test_a_case_of_the_matrix_has_right_values_at_its_defaults(case: str, machine: str) -> None:
    name, parameters = MATRIX[case]
    with RuntimeContext(machine, sanitize=True) as torch:  # a finding raises at the end
        outcome = PROGRAMS[name].run(torch, **parameters)
    assert outcome.values_ok is True
    assert outcome.bound.total_ps <= outcome.latency_ps


@settings(max_examples=12, deadline=None)
@given(
    name=st.sampled_from(["allreduce_ring", "allreduce_tree"]),
    ranks=st.integers(1, 16),
    num_bytes=st.integers(4, 20_000),
    buffer=st.sampled_from(["tcm", "sram", "hbm"]),
)
def test_any_number_of_pes_gets_the_sum(name: str, ranks: int, num_bytes: int, buffer: str) -> None:
    outcome = run_small(name, ranks=ranks, bytes=num_bytes, buffer=buffer)
    assert outcome.values_ok is True
    assert len(outcome.launches[0].pes) == ranks


@settings(max_examples=8, deadline=None)
@given(rows=st.integers(1, 4), columns=st.integers(1, 4), num_bytes=st.integers(4, 20_000))
def test_any_mesh_gets_the_sum(rows: int, columns: int, num_bytes: int) -> None:
    outcome = run_small("allreduce_mesh", rows=rows, columns=columns, bytes=num_bytes)
    assert outcome.values_ok is True
    assert len(outcome.launches[0].pes) == rows * columns


@pytest.mark.parametrize("queue_commands", [1, 2])
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("allreduce_ring", {"ranks": 3}),
        ("allreduce_cubes", {"cubes": 2}),
        ("allreduce_mesh", {"rows": 3, "columns": 2}),
        ("allreduce_tree", {"ranks": 5}),
    ],
)
def test_tiles_longer_than_a_ring_pass_with_any_queue(
    name: str, shape: dict[str, int], queue_commands: int
) -> None:
    """A ring has room for 256 of 1000 bytes."""
    with RuntimeContext(narrow_machine(queue_commands)) as torch:
        outcome = PROGRAMS[name].run(torch, bytes=1000, slot=64, **shape)
    assert outcome.values_ok is True


def narrow_machine(queue_commands: int) -> Machine:
    return build_machine(parse_machine("ahbm-small", [f"pe.queue_commands={queue_commands}"]))


def test_cubes_take_all_their_pes() -> None:
    pes = run_small("allreduce_cubes", cubes=3).launches[0].pes
    assert {pe.cube for pe in pes} == {0, 1, 2}
    assert len(pes) == 3 * MACHINE.grid.num_pes_per_cube


def test_a_large_tile_is_fastest_in_tcm_and_slowest_in_sram() -> None:
    """As published for KernBench: the link of the SRAM is the narrowest."""
    with_slots_in = {
        buffer: run_small("allreduce_ring", bytes=65_536, buffer=buffer).latency_ps
        for buffer in ("tcm", "hbm", "sram")
    }
    assert sorted(with_slots_in, key=with_slots_in.__getitem__) == ["tcm", "hbm", "sram"]


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("allreduce_ring", {"ranks": 17}, r"found 17 PEs, expected at most the 16 of a SIP"),
        ("allreduce_ring", {"ranks": 0}, r"found ranks=0, expected at least 1"),
        ("allreduce_mesh", {"rows": 5, "columns": 4}, r"found 20 PEs, expected at most the 16"),
        ("allreduce_mesh", {"columns": -1}, r"found columns=-1, expected at least 1"),
        ("allreduce_cubes", {"cubes": 5}, r"found cubes=5, expected at most the 4"),
        ("allreduce_tree", {"bytes": 3}, r"found bytes=3, expected at least the 4 of one element"),
    ],
)
def test_what_the_machine_has_not_is_refused(
    name: str, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(BenchError, match=message):
        run_small(name, **parameters)


@needs_both_engines
@pytest.mark.parametrize("name", ["allreduce_ring", "allreduce_mesh", "allreduce_tree"])
def test_both_engines_give_the_same_reports(name: str) -> None:
    native, reference = (
        run_small(name, engine=kind) for kind in (EngineKind.NATIVE, EngineKind.REFERENCE)
    )
    assert native == reference
