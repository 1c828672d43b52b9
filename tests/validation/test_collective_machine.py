"""Collectives of whole machines: oracles that hold, and that a change of the machine breaks."""

from dataclasses import replace

import pytest

from tests.kinds import every_engine
from tilewright.collectives.operation import Operation
from tilewright.engine import EngineKind, native_built
from tilewright.validation.collective import bound
from tilewright.validation.collective import machine as collective_machine
from tilewright.validation.finding import Finding

KIND = EngineKind.NATIVE if native_built() else EngineKind.REFERENCE


def growth(kind: EngineKind, operation: Operation) -> Finding:
    turn = {
        Operation.ALL_GATHER: collective_machine._taken,
        Operation.REDUCE_SCATTER: collective_machine._summed,
    }[operation]
    return collective_machine.check_growth(kind, operation=operation, turn=turn, ranks=3, kib=16)


@every_engine
@pytest.mark.parametrize("operation", [Operation.ALL_GATHER, Operation.REDUCE_SCATTER])
def test_more_bytes_take_what_the_data_sheet_says_to_the_picosecond(
    kind: EngineKind, operation: Operation
) -> None:
    assert growth(kind, operation).ok


@pytest.mark.parametrize(
    ("change", "operation"),
    [
        ("fabric.bytes_per_us=127000", Operation.ALL_GATHER),
        ("pe.tcm.read_bytes_per_us=500000", Operation.ALL_GATHER),
        ("pe.tcm.write_bytes_per_us=500000", Operation.ALL_GATHER),
        ("pe.vector.lanes=256", Operation.REDUCE_SCATTER),
    ],
)
def test_a_slower_part_of_the_machine_breaks_the_closed_form(
    change: str, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collective_machine, "QUIET", (*collective_machine.QUIET, change))
    assert not growth(KIND, operation).ok


def test_a_walk_that_is_wrong_by_a_tenth_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = collective_machine._run
    _, algorithm, fabric = collective_machine.WALKED[0]
    monkeypatch.setattr(collective_machine, "WALKED_BYTES", 64 * 1024)
    assert collective_machine.check_walk(KIND, algorithm=algorithm, fabric=fabric).ok

    def slower(*args: object, **named: object) -> object:
        row = run(*args, **named)  # type: ignore[arg-type]
        return row.model_copy(update={"latency_ps": row.latency_ps * 11 // 10})

    monkeypatch.setattr(collective_machine, "_run", slower)
    assert not collective_machine.check_walk(KIND, algorithm=algorithm, fabric=fabric).ok


def test_bounds_are_counted_on_the_links_between_sips() -> None:
    """In links of 128 GB/s: a mesh of 2 x 3 has 14 and two at a corner; a torus has 24, four each,
    of which a row has six to the other.
    """
    mesh, torus = (collective_machine.links_of(kind) for kind in ("mesh", "torus"))
    unit = 1 / 128_000
    assert float(bound.into_a_corner(mesh)) == pytest.approx(5 / 6 / 2 * unit)
    assert float(bound.into_a_corner_twice(mesh)) == pytest.approx(5 / 6 * unit)
    assert float(bound.over_all_links(mesh)) == pytest.approx(10 / 14 * unit)
    assert float(bound.over_the_middle(mesh)) == pytest.approx(3 / 2 / 3 * unit)
    assert float(bound.into_a_corner(torus)) == pytest.approx(5 / 6 / 4 * unit)
    assert float(bound.over_the_middle(torus)) == pytest.approx(3 / 2 / 6 * unit)


def test_a_run_below_its_bound_breaks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    law = replace(bound.LAWS[2], algorithms=("ring",))
    monkeypatch.setattr(collective_machine, "BOUND_BYTES", 6 * 1024)
    collective_machine.bound_run_ps.cache_clear()
    assert collective_machine.check_bound(KIND, law=law).ok
    monkeypatch.setattr(collective_machine, "bound_run_ps", lambda *_: 1)
    assert not collective_machine.check_bound(KIND, law=law).ok


@pytest.fixture(autouse=True)
def _forget_runs() -> None:
    collective_machine.bound_run_ps.cache_clear()
