"""Whole runs of small programs: sums, launches, second executions, interruptions."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.kinds import every_engine
from tests.records.full_disk import fill_disk, needs_full
from tests.report.perfetto.read_trace import read_trace
from tests.studies.run_programs import SCALE, request_of, run_file, written
from tilewright.engine import EngineKind
from tilewright.errors import BenchError, RecordError
from tilewright.records import RunParts
from tilewright.report.perfetto import recorder
from tilewright.studies.run import execute
from tilewright.studies.run.command import RunWatch, run_program


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    return written(tmp_path, SCALE)


COUNTED = """
from pathlib import Path
file = Path(__file__).with_name("loads")
loads = (len(file.read_bytes()) if file.exists() else 0) + 1
file.write_bytes(b"." * loads)
"""


def test_the_breakdown_adds_up_to_the_latency_and_nothing_is_left_unexplained(scale: Path) -> None:
    record = run_file(scale)
    first, last = record.launches[0], record.launches[-1]
    assert record.latency_ps == last.submitted_ps + last.latency_ps - first.submitted_ps
    parts = record.breakdown_ps
    assert parts.total_ps == record.latency_ps
    assert (parts.other, parts.execution, parts.host_transfer) == (0, 0, 0)
    assert min(parts.dispatch, parts.memory_read, parts.memory_write, parts.vector) > 0
    assert record.ok
    assert record.values_ok is None
    assert record.bound_ps is None
    assert record.counters["loads"] == 2 * 16 * 4
    assert record.num_pes == 16  # of two launches, each counted once
    assert set(record.lines_ps) == {f"{op} mine.py:11" for op in ("load", "mul", "store")}
    executed_ps = record.latency_ps - parts.dispatch - parts.completion
    assert sum(record.lines_ps.values()) == executed_ps


@every_engine
def test_both_engines_give_the_same_record_but_for_themselves(
    scale: Path, kind: EngineKind
) -> None:
    native, other = (
        run_program(replace(request_of(scale, n=256), engine=engine), RunWatch())
        for engine in (EngineKind.REFERENCE, kind)
    )
    left, right = native.model_dump(), other.model_dump()
    for document in (left, right):
        document.pop("versions")
        document["totals"].pop("num_events")  # steps of a core are its own affair
    assert left == right


def test_a_trace_changes_no_time_and_has_the_lines_of_the_kernel(
    scale: Path, tmp_path: Path
) -> None:
    plain = run_file(scale)
    file = tmp_path / "run.pftrace"
    traced = run_file(scale, RunWatch(trace=file))
    assert traced.breakdown_ps == plain.breakdown_ps
    assert traced.launches == plain.launches
    trace = read_trace(file.read_bytes())
    assert len(trace.slices["host", "launches"]) == 2
    vector = trace.slices["sip0.cube0.pe0", "vector"]
    assert {one.name for one in vector} == {"mul mine.py:11"}
    assert vector[0].arguments["line"] == f"{scale}:11 in scale"
    reads = [one for (_, name), each in trace.slices.items() if "dma read" in name for one in each]
    writes = [one for (_, n), each in trace.slices.items() if "dma write" in n for one in each]
    assert len(reads) == len(writes) == 2 * 16 * 4
    assert {one.name for one in reads} == {"load mine.py:11"}
    assert {one.name for one in writes} == {"store mine.py:11"}
    arrows = trace.flows()
    assert len(arrows) == len(reads)
    for slices in arrows.values():
        assert [one.name.split()[0] for one in slices] == ["load", "mul"]
    busy = [value for values in trace.values.values() for _, value in values]
    assert 0 < max(busy) <= 100


def test_a_trace_is_bounded_and_says_what_it_left_out(scale: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.pftrace"
    record = run_file(scale, RunWatch(trace=file, trace_limit=10))
    trace = read_trace(file.read_bytes())
    slices = sum(len(each) for each in trace.slices.values())
    values = sum(len(each) for each in trace.values.values())
    assert slices + values == 10
    assert any("more were left out; raise --trace-limit" in note for note in record.notes)


def test_draining_a_trace_more_often_writes_the_same_slices(
    scale: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / name for name in ("rare", "often")]
    run_file(scale, RunWatch(trace=files[0]))
    monkeypatch.setattr(recorder, "LOOKS_PER_DRAIN", 1)
    run_file(scale, RunWatch(trace=files[1]))
    rare, often = (read_trace(file.read_bytes()) for file in files)
    assert rare.values == often.values
    for name, slices in rare.slices.items():
        times = sorted((one.start_ns, one.end_ns, one.name) for one in slices)
        assert times == sorted((one.start_ns, one.end_ns, one.name) for one in often.slices[name])


def test_a_trace_that_cannot_be_written_is_refused_before_the_run(scale: Path) -> None:
    with pytest.raises(RecordError, match="a directory to write the trace into"):
        run_file(scale, RunWatch(trace=scale.parent / "missing" / "run.pftrace"))


@needs_full
def test_a_disk_that_is_full_while_a_program_runs_is_not_its_mistake(
    scale: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk(monkeypatch, buffering=0)
    with pytest.raises(RecordError, match=r"No space left .* a writable path for the trace"):
        run_file(scale, RunWatch(trace=scale.parent / "run.pftrace"))


def test_without_a_second_execution_the_parts_are_those_of_launches(scale: Path) -> None:
    once, twice = run_file(scale, RunWatch(is_once=True)), run_file(scale)
    launches = once.launches
    assert once.breakdown_ps == RunParts(
        dispatch=sum(row.dispatch_ps for row in launches),
        execution=sum(row.execution_ps for row in launches),
        completion=sum(row.completion_ps for row in launches),
    )
    assert once.latency_ps == twice.latency_ps


def test_a_program_prints_once_although_it_runs_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_file(written(tmp_path, SCALE + "    print('done')\n"))
    assert capsys.readouterr().out == "done\n"


def test_modules_beside_a_program_are_loaded_anew_with_it(tmp_path: Path) -> None:
    written(tmp_path, "TURNS = iter((1, 2, 3))\n", "turns.py")
    text = "from turns import TURNS\n" + SCALE.replace("range(times)", "range(next(TURNS))")
    record = run_file(written(tmp_path, text))
    assert len(record.launches) == 1
    assert record.notes == ()


def test_a_program_that_does_not_repeat_itself_gets_no_breakdown_and_is_told(
    tmp_path: Path,
) -> None:
    text = COUNTED + SCALE.replace("range(times)", "range(loads - 1)")
    record = run_file(written(tmp_path, text))
    assert len(record.launches) == 1
    assert record.breakdown_ps.execution > 0
    (note,) = record.notes
    assert "does not do the same when it runs once more: its launches had other times" in note


def test_a_program_that_fails_when_it_runs_again_keeps_its_first_run(tmp_path: Path) -> None:
    text = COUNTED + SCALE.replace("range(times)", "range(next(iter([1] * (3 - loads))))")
    record = run_file(written(tmp_path, text))
    (note,) = record.notes
    assert record.ok
    assert "does not do the same when it runs once more: it failed (StopIteration" in note


def test_a_launch_without_programs_at_the_end_is_no_trouble(tmp_path: Path) -> None:
    text = SCALE + "    first, *_ = torch.machine.grid.pes()\n"
    text += "    torch.launch(lambda: None, grid=(0,), on=[first])\n"
    record = run_file(written(tmp_path, text))
    assert (record.launches[-1].num_pes, record.launches[-1].latency_ps) == (0, 0)
    assert record.breakdown_ps.execution == 0


def test_transfers_between_launches_are_the_host_s(tmp_path: Path) -> None:
    parts = run_file(written(tmp_path, SCALE + "        x.numpy()\n")).breakdown_ps
    assert parts.host_transfer > 0
    assert parts.other == 0


def test_launches_under_way_together_are_followed_by_one_chain(tmp_path: Path) -> None:
    text = SCALE.replace("(x), n)", "(x), n, wait=False)")
    record = run_file(written(tmp_path, text), times=3)
    assert record.breakdown_ps.total_ps == record.latency_ps
    assert record.breakdown_ps.execution == 0
    assert len(record.launches) == 3


def test_a_run_without_any_request_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "def run(torch):\n    pass\n")
    with pytest.raises(BenchError, match="asked nothing of the machine"):
        run_file(file)


def test_a_run_without_launches_is_all_transfer(tmp_path: Path) -> None:
    file = written(tmp_path, SCALE.replace("timed=False", "timed=True"))
    record = run_file(file, times=0)
    assert record.latency_ps == record.breakdown_ps.host_transfer > 0


@pytest.mark.parametrize("indent", [4, 8])
def test_an_interrupted_run_leaves_a_record_of_what_had_completed(
    tmp_path: Path, indent: int
) -> None:
    """After both launches, or after the first of them."""
    program = written(tmp_path, f"{SCALE}{indent * ' '}raise KeyboardInterrupt\n")
    file = tmp_path / "cut.pftrace"
    record = run_file(program, RunWatch(trace=file))
    assert (record.status, record.ok) == ("interrupted", False)
    assert len(record.launches) == {4: 2, 8: 1}[indent]
    assert record.breakdown_ps.total_ps == record.latency_ps > 0
    assert len(read_trace(file.read_bytes()).slices["host", "launches"]) == len(record.launches)


def test_an_engine_that_was_interrupted_still_gives_its_trace(tmp_path: Path) -> None:
    """After an interruption inside the core only what has happened can be read."""
    text = SCALE + "    torch.driver.device.engine.guard.stop(KeyboardInterrupt())\n"
    program, file = written(tmp_path, text + "    raise KeyboardInterrupt\n"), tmp_path / "trace"
    record = run_file(program, RunWatch(trace=file))
    assert (record.status, len(record.launches)) == ("interrupted", 2)
    assert len(read_trace(file.read_bytes()).slices["host", "launches"]) == 2


def test_a_run_interrupted_before_its_first_launch_took_no_time(tmp_path: Path) -> None:
    text = SCALE.replace("    for _", "    raise KeyboardInterrupt\n    for _")
    record = run_file(written(tmp_path, text))
    assert (record.status, record.latency_ps, record.launches) == ("interrupted", 0, ())


def test_an_error_leaves_no_half_of_a_trace(tmp_path: Path) -> None:
    file = tmp_path / "run.pftrace"
    broken = written(tmp_path, SCALE + "    return 7\n")
    with pytest.raises(BenchError, match=r"run\(torch\) returned 7"):
        run_file(broken, RunWatch(trace=file))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine.py"]


def test_progress_tells_simulated_time_and_rate(
    scale: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "SECONDS_PER_TEXT", 0.0)
    texts: list[str] = []
    run_file(scale, RunWatch(progress=texts.append))
    assert any(
        text.startswith("run: ") and "simulated" in text and "events/s, scale on 16 PEs" in text
        for text in texts
    )


GOES_ON = SCALE.replace(
    "def run(",
    """def broken(x, n: int):
    scale(x, n)
    int(tl.load(x))
    raise LookupError("on purpose")


def run(""",
).replace(
    "        torch.launch(scale, LocalShard(x), n)",
    """        torch.launch(scale, LocalShard(x), n)
        try:
            torch.launch(broken, LocalShard(x), n)
        except LookupError:
            pass""",
)


def test_a_program_that_catches_the_error_of_a_kernel_has_a_record_and_a_whole_trace(
    tmp_path: Path,
) -> None:
    file = tmp_path / "run.pftrace"
    record = run_file(written(tmp_path, GOES_ON), RunWatch(trace=file), times=3)
    assert [launch.name for launch in record.launches] == ["scale"] * 3
    assert record.breakdown_ps.total_ps == record.latency_ps
    assert any("an error ended programs of the run" in note for note in record.notes)
    assert max(record.utilisation.values()) > 0
    trace = read_trace(file.read_bytes())
    assert len(trace.slices["host", "launches"]) == 3
    starts = [1000 * one.start_ns for one in trace.slices["sip0.cube0.pe0", "vector"]]
    for launch in record.launches:  # also those on devices that were built after an error
        end_ps = launch.submitted_ps + launch.latency_ps
        assert sum(launch.submitted_ps <= start_ps <= end_ps for start_ps in starts) == 4
