"""Advised changes, run: gains by hand, the limit of time, and records that cannot be run again."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.studies.run_programs import SCALE, request_of, written
from tilewright.analysis.phases import half_width_ps
from tilewright.errors import BenchError
from tilewright.machine import build_machine, parse_machine
from tilewright.machine.build import phase_shift_ps
from tilewright.records import RunRecord
from tilewright.report.explain.run import explain_run
from tilewright.studies.explain_measure import GainMeter, measure_advice, request_of_record
from tilewright.studies.run.command import RunWatch, run_program
from tilewright.studies.run.execute import RunRequest, execute

FASTER = "pe.vector.hz=2000000000"
QUIET = "cube.hbm.refresh.kind=none"

ADAPTS = """
from tilewright import language as tl
from tilewright.host import DPPolicy, LocalShard


def scale(x, n: int):
    for _ in range(n):
        tl.store(x, tl.load(x) * 2.0)


def run(torch):
    x = torch.zeros((16, 64), dtype="f32", dp=DPPolicy(cube="row_wise", pe="row_wise"), timed=False)
    steps = 8 if torch.machine.spec.host.pcie.endpoint_ps == 100_000 else 1
    torch.launch(scale, LocalShard(x), steps)
"""


def recorded(request: RunRequest, **watch: bool | int) -> RunRecord:
    return run_program(request, RunWatch(**watch))  # type: ignore[arg-type]


def on_quiet_machine(request: RunRequest) -> RunRequest:
    """Without refresh one phase says all."""
    machine = build_machine(parse_machine("ahbm-small", (QUIET,)))
    return replace(request, machine=machine, overrides=(QUIET,))


def latency_ps(request: RunRequest, shift_ps: int) -> int:
    shifted = replace(request, refresh_shift_ps=shift_ps)
    return execute(shifted, lambda _: ((), None), is_silent=True).latency_ps


def test_a_gain_is_of_the_means_at_the_same_phases(tmp_path: Path) -> None:
    request = request_of(written(tmp_path, SCALE))
    gain = GainMeter(request, 4).gain(FASTER)
    machine = build_machine(parse_machine("ahbm-small", (FASTER,)))
    changed = replace(request, machine=machine, overrides=(FASTER,))
    count = len(gain.base_ps)
    assert count in (4, 8, 16)
    shifts = [phase_shift_ps(request.machine.spec, index, count) for index in range(count)]
    before = [latency_ps(request, shift_ps) for shift_ps in shifts]
    after = [latency_ps(changed, shift_ps) for shift_ps in shifts]
    assert (list(gain.base_ps), list(gain.changed_ps)) == (before, after)
    assert gain.share == pytest.approx(1 - sum(after) / sum(before))
    width_ps = half_width_ps([one - other for one, other in zip(before, after, strict=True)])
    assert width_ps is not None
    assert gain.half_width == pytest.approx(width_ps * count / sum(before))


def test_a_machine_without_refresh_has_one_gain(tmp_path: Path) -> None:
    gain = GainMeter(on_quiet_machine(request_of(written(tmp_path, SCALE))), 4).gain(FASTER)
    assert (len(gain.base_ps), gain.half_width) == (1, None)


def test_measured_advice_has_a_gain_within_its_bound(tmp_path: Path) -> None:
    record = recorded(request_of(written(tmp_path, SCALE), times=1), phases=2)
    explained = explain_run(record, "run.json")
    told: list[str] = []
    found = measure_advice(record, explained, seconds=600, tell=told.append)
    assert len(found.advice) == len(explained.advice) == len(told) > 0
    assert told[0].startswith(f"run with {explained.advice[0].option} (1 of")
    for advice in found.advice:
        assert advice.gain is not None
        assert advice.mean_ps is not None
        assert advice.gain <= advice.bound
        assert advice.mean_ps >= advice.least_ps
    assert found.notes == ()


def test_no_change_is_begun_after_the_time(tmp_path: Path) -> None:
    record = recorded(request_of(written(tmp_path, SCALE)))
    explained = explain_run(record, "run.json")
    found = measure_advice(record, explained, seconds=0)
    assert found.advice == explained.advice
    assert found.notes == (
        f"measured 0 of {len(explained.advice)} changes in 0 s; --seconds gives it more",
    )


def test_a_record_without_a_path_is_traced_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = request_of(written(tmp_path, SCALE + "    print('heard')\n"))
    once = recorded(request, is_once=True)
    explained = explain_run(once, "run.json")
    assert explained.advice == ()
    capsys.readouterr()
    found = measure_advice(once, explained, seconds=0)
    assert found.advice == explain_run(recorded(request), "run.json").advice != ()
    assert capsys.readouterr().out == "heard\n"  # of recorded, not of measure_advice
    assert "no changes to run with" not in "".join(found.notes)


def test_a_program_that_does_other_work_on_the_changed_machine_is_named(tmp_path: Path) -> None:
    request = on_quiet_machine(request_of(written(tmp_path, ADAPTS)))
    record = recorded(request)
    found = measure_advice(record, explain_run(record, "run.json"), seconds=600)
    (note,) = found.notes
    assert note.startswith("--set host.pcie.endpoint_ps=50000: the program does other work")
    assert GainMeter(request).gain("pe.vector.hz=2000000000").does_same


def test_a_record_says_enough_to_run_it_again(tmp_path: Path) -> None:
    request = request_of(written(tmp_path, SCALE), n=512)
    again = request_of_record(recorded(request))
    assert (again.source.name, again.parameters) == (request.source.name, request.parameters)
    assert again.machine.spec == request.machine.spec
    assert latency_ps(again, 0) == latency_ps(request, 0)


def test_what_has_changed_since_is_not_measured(tmp_path: Path) -> None:
    file = written(tmp_path, SCALE)
    record = recorded(request_of(file))
    explained = explain_run(record, "run.json")

    def refused(changed: RunRecord, message: str) -> None:
        with pytest.raises(BenchError, match=message):
            measure_advice(changed, explained, seconds=600)

    machine = record.machine
    refused(record.model_copy(update={"machine_hash": "0" * 64}), "another machine than")
    own = machine.model_copy(update={"is_own": True})
    refused(record.model_copy(update={"machine": own}), "describes its own machine")
    lost = machine.model_copy(update={"source": str(tmp_path / "lost.yaml")})
    refused(record.model_copy(update={"machine": lost}), "cannot be read again")
    other = record.model_copy(update={"latency_ps": record.latency_ps + 1})
    refused(other, "where the record has")
    file.write_text(SCALE.replace("2.0", "3.0"), encoding="utf-8")
    refused(record, "has changed since the record")
