"""Phases of refresh that a run over all slices can tell apart."""

import pytest

from tilewright.machine import parse_machine
from tilewright.machine.refresh_phase import phase_shift_ps


@pytest.mark.parametrize("preset", ["ahbm", "ahbm-small", "crossbar-chip"])
@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_phases_are_even_over_the_interval_and_over_the_distance_of_slices(
    preset: str, count: int
) -> None:
    spec = parse_machine(preset)
    interval_ps = spec.cube.hbm.refresh.interval_ps
    shifts = [phase_shift_ps(spec, index, count) for index in range(count)]
    for period_ps in (interval_ps, interval_ps / spec.cube.pes):
        phases = sorted(shift % period_ps / period_ps for shift in shifts)
        gaps = [after - before for before, after in zip(phases, [*phases[1:], 1], strict=True)]
        assert phases[0] == pytest.approx(0, abs=1e-4)
        assert max(gaps) < 1.6 / count


def test_twice_as_many_phases_contain_those_before() -> None:
    spec = parse_machine("ahbm")
    few, many = ({phase_shift_ps(spec, index, n) for index in range(n)} for n in (4, 8))
    assert few < many


def test_a_machine_without_refresh_has_one_phase() -> None:
    spec = parse_machine("ahbm", ("cube.hbm.refresh.kind=none",))
    assert phase_shift_ps(spec, 3, 4) == 0
