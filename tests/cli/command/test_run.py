"""``tilewright run``, ``list``, ``explain`` and ``compare``: tables, documents, statuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.records.run_records import run_record
from tests.studies.run_programs import SCALE, written
from tilewright.cli.main import main
from tilewright.engine.spec import Limits
from tilewright.programs import PROGRAMS
from tilewright.records import RunRecord, read_record, write_record
from tilewright.records.explain import CompareRecord, ExplainRecord, ListRecord
from tilewright.records.run.record import RunSweepRecord
from tilewright.report.format import width_text
from tilewright.units import format_ps

Cli = Callable[..., tuple[int, str, str]]
SMALL = ("--machine", "ahbm-small")
SAMPLED = ("run", "gemm_single_pe", *SMALL)
ONE = (*SAMPLED, "--phases", "1")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def run_and_capture(*arguments: str) -> tuple[int, str, str]:
        status = main(list(arguments))
        output, errors = capsys.readouterr()
        return status, output, errors

    return run_and_capture


def test_the_document_of_a_run_has_its_figures(cli: Cli) -> None:
    status, output, _ = cli(*ONE, "--json")
    record = RunRecord.model_validate_json(output)
    document = json.loads(output)
    assert (status, document["ok"], document["values_ok"]) == (0, True, True)
    assert sum(document["breakdown_ps"].values()) == document["latency_ps"]
    assert document["ratio"] == document["latency_ps"] / document["bound_ps"] > 1
    assert document["machine_hash"] == record.machine_hash
    assert document["what"]["program"] == "gemm_single_pe"
    assert document["parameters"]["m"] == 32
    assert 0 < max(document["utilisation"].values()) <= 1


def test_the_table_has_the_figures_of_the_record(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    status, table, errors = cli(*ONE, "--record", str(file))
    record = read_record(file, RunRecord)
    assert status == 0
    assert errors.startswith("engine: ")
    lines = table.splitlines()
    assert lines[0].startswith("gemm_single_pe on ahbm-small (m=32")
    assert f"  ratio       {record.ratio:.2f}" in lines
    assert any(line.startswith("  values      ok: error") for line in lines)
    assert f"  bottleneck  {record.bottleneck}" in lines


def test_parameters_overrides_and_seed_are_in_the_record(cli: Cli) -> None:
    options = ("--param", "k=256", "--set", "pe.vector.lanes=256", "--seed", "5", "--once")
    _, output, _ = cli(*ONE, *options, "--json")
    record = RunRecord.model_validate_json(output)
    assert (record.parameters["k"], record.seed) == (256, 5)
    assert record.machine.overrides == ("pe.vector.lanes=256",)
    assert record.machine.fields["pe.vector.lanes"] == 256
    assert record.what.options["once"] is True


def test_limits_are_in_the_record_those_that_were_not_set_too(cli: Cli) -> None:
    _, output, _ = cli(*ONE, "--limit", "commands=5000", "--limit", "time=2 ms", "--once", "--json")
    limits = RunRecord.model_validate_json(output).limits
    assert (limits["commands"], limits["time_ps"]) == (5000, 2 * 10**9)
    assert (limits["events"], limits["programs"]) == (Limits().events, Limits().programs)


def test_without_data_there_are_no_values_to_check(cli: Cli) -> None:
    status, output, _ = cli(*ONE, "--no-data", "--once", "--json")
    assert (status, json.loads(output)["values_ok"]) == (0, None)


def test_wrong_values_end_with_status_1(cli: Cli, tmp_path: Path) -> None:
    text = SCALE.replace("        torch.launch", "        report = torch.launch").replace(
        "(x), n)", "(x), n).report"
    )
    text += """
    from tilewright.programs.bound import Bound
    from tilewright.programs.contract import BenchOutcome
    return BenchOutcome(
        bound=Bound(1, "HBM", {"HBM": 1}), launches=(report,), max_error=0.5, tolerance=0.1
    )
"""
    status, output, _ = cli("run", str(written(tmp_path, text)), *SMALL, "--param", "n=64")
    assert status == 1
    assert "WRONG: error 5.0e-01" in output


def test_a_latency_below_its_bound_is_a_failed_check(cli: Cli, tmp_path: Path) -> None:
    text = SCALE.replace("        torch.launch", "        report = torch.launch").replace(
        "(x), n)", "(x), n).report"
    )
    text += """
    from tilewright.programs.bound import Bound
    from tilewright.programs.contract import BenchOutcome
    return BenchOutcome(
        bound=Bound(10**12, "HBM", {"HBM": 10**12}), launches=(report,), max_error=None,
        tolerance=None,
    )
"""
    status, output, _ = cli("run", str(written(tmp_path, text)), *SMALL, "--param", "n=64")
    assert status == 1
    assert "is below its lower bound, 1 s" in output


@pytest.mark.parametrize("as_json", [False, True])
def test_an_interrupted_run_ends_with_130_and_leaves_its_record(
    cli: Cli, tmp_path: Path, as_json: bool
) -> None:
    program = written(tmp_path, SCALE + "        raise KeyboardInterrupt\n")
    file = tmp_path / "run.json"
    options = ("--json",) if as_json else ()
    status, output, _ = cli("run", str(program), *SMALL, "--record", str(file), *options)
    assert status == 130
    record = read_record(file, RunRecord)
    assert (record.status, len(record.launches)) == ("interrupted", 1)
    if as_json:
        assert RunRecord.model_validate_json(output) == record
    else:
        assert "INTERRUPTED" in output


def test_several_launches_have_a_row_each(cli: Cli, tmp_path: Path) -> None:
    _, output, _ = cli("run", str(written(tmp_path, SCALE)), *SMALL, "--once")
    assert [line.split()[:2] for line in output.splitlines() if line.startswith("  scale")] == [
        ["scale", "16"],
        ["scale", "16"],
    ]


def test_a_wrong_access_is_told_and_ends_with_status_1(cli: Cli, tmp_path: Path) -> None:
    text = SCALE.replace("torch.zeros", "torch.empty").replace(", timed=False", "")
    program = str(written(tmp_path, text))
    status, output, _ = cli("run", program, *SMALL, "--sanitize", "--once")
    assert status == 1
    assert "uninitialised read" in output
    assert f"{program}:11 in scale" in output
    status, output, _ = cli("run", program, *SMALL, "--sanitize", "--once", "--json")
    assert (status, json.loads(output)["findings"][0]["kind"]) == (1, "uninitialised read")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), "no program 'nothing'"),
        (("nothing.py",), "a file that cannot be read"),
        (("gemm_single_pe", "--param", "m"), "NAME=VALUE"),
        (("gemm_single_pe", "--param", "m=1", "--param", "m=2"), "m twice"),
        (("gemm_single_pe", "--param", "mm=1"), "a parameter 'mm'"),
        (("gemm_single_pe", "--device", "sip:9"), "sip:9"),
        (("gemm_single_pe", "--plot", "x.svg"), "no --sweep"),
        (("gemm_single_pe", "--jobs", "2"), "no --sweep"),
        (("gemm_single_pe", "--sweep", "m=32", "--param", "m=1"), "m, which is 1 by another"),
        (("allreduce", "--sweep", "bytes=8,9", "--bytes", "8"), "bytes, which is 8 by another"),
        (("gemm_single_pe", "--sweep", "m=32", "--trace", "x"), "one run to trace"),
        (("gemm_single_pe", "--record", "/no/where/x.json"), "no directory"),
        (("gemm_single_pe", "--limit", "speed=9"), "programs, commands, events, time"),
        (("softmax", *SMALL, "--limit", "commands=5"), "more than 5 commands"),
        (("softmax", *SMALL, "--limit", "events=500"), "more than 500 events"),
        (("softmax", *SMALL, "--limit", "time=1 us"), "work left at 1000000 ps"),
    ],
)
def test_wrong_input_is_refused_without_a_traceback(
    cli: Cli,
    arguments: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # where files may be written, whoever runs the tests
    status, output, errors = cli("run", *arguments)
    assert (status, output) == (2, "")
    assert words in errors
    assert "Traceback" not in errors


def test_a_sweep_is_a_table_a_document_and_a_picture(cli: Cli, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("sweep.svg", "sweep.json")]
    options = ("--sweep", "k=64,128", "--plot", str(files[0]), "--record", str(files[1]))
    status, output, _ = cli(*ONE, *options)
    assert status == 0
    record = read_record(files[1], RunSweepRecord)
    assert [point.parameters for point in record.points] == [{"k": 64}, {"k": 128}]
    assert files[0].read_text().startswith("<svg")
    assert "k=128" in output


def test_a_point_of_a_sweep_has_its_half_width_smallest_and_largest(
    cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "sweep.json"
    _, table, _ = cli(*SAMPLED, "--phases", "9", "--sweep", "k=64", "--record", str(file))
    (point,) = read_record(file, RunSweepRecord).points
    assert point.phases is not None
    mean, least, most = (
        format_ps(round(each))
        for each in (point.phases.mean_ps, point.phases.min_ps, point.phases.max_ps)
    )
    line = next(line for line in table.splitlines() if "k=64" in line)
    assert f"{mean} {width_text(point.phases)} {least} to {most}" in " ".join(line.split())


def test_the_list_has_every_ready_program(cli: Cli) -> None:
    status, output, _ = cli("list")
    assert status == 0
    assert [line.split()[0] for line in output.splitlines()[: len(PROGRAMS)]] == list(PROGRAMS)
    _, output, _ = cli("list", "--json")
    record = ListRecord.model_validate_json(output)
    assert {row.name for row in record.programs} == set(PROGRAMS)


def test_the_list_tells_the_parameters_of_one_program(cli: Cli) -> None:
    _, output, _ = cli("list", "matmul")
    assert "  staging   str, ref/ref unless set (ref/ref, load/ref" in output
    status, _, errors = cli("list", "mathmul")
    assert status == 2
    assert "did you mean 'matmul'?" in errors


def test_explain_and_compare_read_what_run_wrote(cli: Cli, tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    cli(*ONE, "--record", files[0])
    cli(*ONE, "--param", "k=256", "--record", files[1])
    status, output, _ = cli("explain", files[0])
    assert status == 0
    assert "- It uses 1 of 16 PEs." in output
    _, output, _ = cli("explain", files[0], "--json")
    assert ExplainRecord.model_validate_json(output).program == "gemm_single_pe"
    status, output, _ = cli("explain", files[0], "--measure", "--seconds", "0", "--json")
    found = ExplainRecord.model_validate_json(output)
    assert (status, found.advice[0].gain) == (0, None)
    assert found.notes[0].startswith("measured 0 of")
    status, output, _ = cli("compare", *files)
    assert status == 0
    assert "  parameters.k: 128 -> 256\n" in output
    assert "times as slow" in output
    _, output, _ = cli("compare", *files, "--json")
    assert not CompareRecord.model_validate_json(output).is_same_run
    _, output, _ = cli("compare", files[0], files[0])
    assert "the same run" in output


@pytest.mark.parametrize("content", [None, "", '{"kind": "run"', "[]", '{"kind": "probe"}'])
@pytest.mark.parametrize("command", ["explain", "compare"])
def test_a_missing_cut_or_foreign_record_is_refused(
    cli: Cli, tmp_path: Path, command: str, content: str | None
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    write_record(good, run_record())
    if content is not None:
        bad.write_text(content)
    files = (str(bad),) if command == "explain" else (str(good), str(bad))
    status, output, errors = cli(command, *files)
    assert (status, output) == (2, "")
    assert "bad.json" in errors


def test_a_collective_s_size_algorithm_and_memory_have_options_of_their_own(cli: Cli) -> None:
    options = ("--bytes", "3000", "--algorithm", "ring", "--buffer", "sram", "--set", "sip.count=2")
    _, output, _ = cli("run", "allreduce", *SMALL, *options, "--once", "--json")
    record = RunRecord.model_validate_json(output)
    assert record.parameters == {"bytes": 3000, "algorithm": "ring", "buffer": "sram"}
    assert record.num_pes == 32  # of two launches side by side, one a SIP


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("allreduce", "--bytes", "8", "--param", "bytes=9"), "bytes twice"),
        (("softmax", "--bytes", "8"), "a parameter 'bytes'"),
        (("allreduce", "--buffer", "l2"), "buffer=l2"),
    ],
)
def test_an_option_that_says_a_parameter_wrongly_is_refused(
    cli: Cli, arguments: tuple[str, ...], found: str
) -> None:
    status, _, errors = cli("run", *arguments)
    assert status == 2
    assert found in errors


def test_a_short_run_is_the_mean_over_refresh_phases_and_says_how_well_it_is_known(
    cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    status, table, _ = cli(*SAMPLED, "--record", str(file))
    phases = read_record(file, RunRecord).phases
    assert status == 0
    assert phases is not None
    assert (phases.count, phases.reason) == (16, "limit")
    assert len(set(phases.latencies_ps)) > 1
    mean, least, most = (
        format_ps(round(each)) for each in (phases.mean_ps, phases.min_ps, phases.max_ps)
    )
    assert f"{mean} {width_text(phases)} (mean of 16 refresh phases, {least} to {most})" in table
    assert "where the time went, along the critical path at refresh phase 0, " in table
    assert "refresh phases: the mean is known to ±" in table


def test_the_number_of_phases_may_be_said_and_is_in_the_record(cli: Cli) -> None:
    _, output, _ = cli(*SAMPLED, "--phases", "3", "--json")
    record = RunRecord.model_validate_json(output)
    assert record.phases is not None
    assert (record.phases.count, record.phases.reason) == (3, "asked")
    assert record.what.options["phases"] == 3
    assert record.ratio is not None
    assert record.ratio * (record.bound_ps or 0) == pytest.approx(record.phases.mean_ps)


def test_phases_that_agree_since_all_miss_the_refresh_claim_no_precision(
    cli: Cli, tmp_path: Path
) -> None:
    short = ("run", "gemm_single_pe")  # half a microsecond; refreshes are 3.9 apart
    file, other = tmp_path / "few.json", tmp_path / "slower.json"
    _, table, _ = cli(*short, "--phases", "4", "--record", str(file))
    phases = read_record(file, RunRecord).phases
    assert phases is not None
    assert phases.half_width_ps == 0
    assert " ±? (mean of 4 refresh phases, " in table
    assert "refresh phases: 4 of them may all miss a refresh, or all meet it alike" in table
    cli(*short, "--phases", "4", "--set", "pe.gemm.hz=500000000", "--record", str(other))
    _, table, _ = cli("compare", str(file), str(other))
    assert "times as slow, at too few refresh phases to know the noise" in table


def test_one_phase_is_no_mean_and_the_table_says_so(cli: Cli) -> None:
    _, table, _ = cli(*ONE)
    assert "(at one refresh phase; --phases has the spread)" in table


def test_a_program_file_is_run_at_every_phase_and_prints_once(cli: Cli, tmp_path: Path) -> None:
    text = SCALE.replace(
        "    for _ in range(times)", "    print('hello')\n    for _ in range(times)"
    )
    file = written(tmp_path, text)
    status, output, _ = cli("run", str(file), *SMALL, "--phases", "4")
    assert status == 0
    assert output.count("hello") == 1
    assert "mean of 4 refresh phases" in output


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--once", "--phases", "4"), "--phases 4"),
        (("--phases", "0"), "--phases"),
        (("--phases", "33"), "--phases"),
    ],
)
def test_phases_that_cannot_be_are_refused(
    cli: Cli, options: tuple[str, ...], expected: str
) -> None:
    status, _, errors = cli(*SAMPLED, *options)
    assert status == 2
    assert expected in errors


def test_compare_says_when_a_difference_is_inside_the_noise(cli: Cli, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.json" for name in ("usual", "slower", "slow", "alone")]
    cli(*SAMPLED, "--record", str(files[0]))
    slower = "cube.hbm.timing.clock_ps=550"
    cli(*SAMPLED, "--set", slower, "--record", str(files[1]))
    cli("run", "gemm_single_pe", *SMALL, "--param", "k=4096", "--record", str(files[2]))
    cli(*ONE, "--record", str(files[3]))
    status, table, _ = cli("compare", str(files[0]), str(files[1]))
    assert status == 0
    assert "no difference: 1.0" in table
    assert "inside the noise of" in table
    _, table, _ = cli("compare", str(files[0]), str(files[2]))
    assert "times as slow; noise over refresh phases" in table
    _, table, _ = cli("compare", str(files[3]), str(files[2]))
    assert "at too few refresh phases to know the noise: run both without --phases" in table


def test_a_record_without_phases_is_still_read(cli: Cli, tmp_path: Path) -> None:
    document = json.loads(run_record().model_dump_json())
    del document["phases"]
    document["schema_version"] = 1
    file = tmp_path / "old.json"
    file.write_text(json.dumps(document))
    assert read_record(file, RunRecord).phases is None
    status, table, _ = cli("compare", str(file), str(file))
    assert (status, "the same run" in table) == (0, True)
