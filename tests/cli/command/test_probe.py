"""``tilewright probe``: its table, its document, its status, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds import every_engine
from tilewright.cli.command.probe import BAR_LETTERS, bar_of
from tilewright.cli.main import main
from tilewright.engine import EngineKind
from tilewright.programs.probe import run as probe_bench
from tilewright.programs.probe.case import PROBE_CASES
from tilewright.records import Breakdown, ProbeRecord
from tilewright.units import format_ps

Run = Callable[..., tuple[int, str, str]]
SMALL = ("--machine", "ahbm-small")
ALONE = ("--phases", "1")
ONE_ROW = (*SMALL, "--case", "pe_local", "--bytes", "4096")


@pytest.fixture
def probe(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_and_capture(*arguments: str) -> tuple[int, str, str]:
        status = main(["probe", *arguments])
        output, errors = capsys.readouterr()
        return status, output, errors

    return run_and_capture


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that no run can meet, so that every row is faster than it."""
    monkeypatch.setattr(probe_bench, "bound_ps", lambda _machine, _paths: 10**12)


def test_the_document_has_the_fields_of_the_record_and_adds_up(probe: Run) -> None:
    sizes = ("--bytes", "64KiB", "--bytes", "256")
    status, output, _ = probe(
        *SMALL, "--case", "pe_local", "--case", "hot_2", *sizes, *ALONE, "--json"
    )
    document = json.loads(output)
    assert (status, document["ok"], document["machine"]) == (0, True, "ahbm-small")
    keys = [(row["case"], row["bytes"]) for row in document["cases"]]
    assert keys == [("pe_local", 256), ("pe_local", 65536), ("hot_2", 256), ("hot_2", 65536)]
    for row in document["cases"]:
        assert sum(row["breakdown_ps"].values()) == row["latency_ps"] >= row["bound_ps"]
        assert row["ratio"] == row["latency_ps"] / row["bound_ps"]
        total = row["bytes"] * row["issuers"]
        assert row["bandwidth_gbs"] == 1000 * total / row["latency_ps"]
        assert row["bound_gbs"] == 1000 * total / row["bound_ps"]
        assert 0 < row["utilisation"] <= 1
        assert row["refresh_limited_gbs"] == pytest.approx(256 * 0.8533, rel=1e-3)
        assert row["bottleneck"].startswith("sip0.cube0.")
    ProbeRecord.model_validate_json(output)


def test_a_row_of_the_table_has_the_figures_of_the_record(probe: Run) -> None:
    _, output, _ = probe(*ONE_ROW, *ALONE, "--json")
    (row,) = json.loads(output)["cases"]
    status, table, _ = probe(*ONE_ROW, *ALONE)
    assert status == 0
    line = next(line for line in table.splitlines() if line.lstrip().startswith("4 KiB"))
    words = line.split()
    assert words[2] == str(row["latency_ps"] / 1000)
    assert words[4] == str(row["bound_ps"] / 1000)
    assert words[6:8] == [f"{row['ratio']:.2f}", f"{row['bandwidth_gbs']:.1f}"]
    assert words[8:10] == [f"{row['refresh_limited_gbs']:.1f}", f"{row['utilisation']:.0%}"]
    letters = {"s": "serialisation", "m": "memory"}
    assert sorted(set(words[10])) == sorted(letters)
    for letter, part in letters.items():
        share = 12 * row["breakdown_ps"][part] / row["latency_ps"]
        assert abs(words[10].count(letter) - share) < 1


def test_the_table_names_the_busiest_part_the_skipped_cases_and_the_checks(probe: Run) -> None:
    status, output, errors = probe(*SMALL, "--bytes", "256")
    assert status == 0
    assert "skipped pe_other_sip: it has one SIP\n" in output
    assert "skipped hot_8: it has 4 PEs a cube, not 8\n" in output
    assert "busiest: sip0.cube0.r0c0 -> sip0.cube0.pe0.dma\n" in output
    assert "16 rows of 16 cases on ahbm-small (hash " in output
    assert "holds: no row is faster than its bound\n" in output
    assert "FAILED" not in output
    assert errors.splitlines()[-1] == "16/16 bisection, 256 B"


def test_the_table_fits_into_80_columns(probe: Run) -> None:
    _, output, _ = probe(*SMALL, "--bytes", "4KiB", "--case", "local_all", "--case", "hot_1")
    assert max(map(len, output.splitlines())) <= 80


def test_help_names_every_case_and_shows_a_command_line(probe: Run) -> None:
    status, output, _ = probe("--help")
    assert status == 0
    for case in PROBE_CASES.values():
        assert f"{case.name} " in output
        assert case.description in output
    assert "tilewright probe --case pe_local" in output


@every_engine
def test_the_engine_is_chosen_by_name_and_decides_no_figure(probe: Run, kind: EngineKind) -> None:
    _, output, errors = probe(*ONE_ROW, "--engine", kind.value, "--json")
    document = json.loads(output)
    assert document["versions"]["engine"] == kind.value
    assert f"engine: {kind.value}" in errors
    assert document["cases"][0]["latency_ps"] == 58_262


def test_an_override_changes_the_figures_and_one_without_effect_is_told(probe: Run) -> None:
    overrides = ("--set", "cube.noc.router_ps=2 ns", "--set", "fabric.links=2")
    status, output, errors = probe(*ONE_ROW, *overrides, "--json")
    row = json.loads(output)["cases"][0]
    assert status == 0
    assert row["latency_ps"] == 58_262 + 2_000  # one router there, one back
    assert "warning: --set fabric.links: has no effect, since there is one SIP" in errors


@pytest.mark.usefixtures("broken")
def test_a_broken_bound_ends_with_1_and_names_the_row(probe: Run) -> None:
    status, output, _ = probe(*ONE_ROW)
    assert status == 1
    words = " ".join(output.split())
    assert "CHECK FAILED: pe_local at 4096 bytes: 58262 ps is below its bound" in words
    assert "holds:" not in output


@pytest.mark.usefixtures("broken")
def test_the_document_of_a_broken_bound_is_not_ok_and_names_the_row(probe: Run) -> None:
    status, output, _ = probe(*ONE_ROW, "--json")
    document = json.loads(output)
    assert (status, document["ok"]) == (1, False)
    assert document["failures"] == [
        "pe_local at 4096 bytes: 58262 ps is below its bound of 1000000000000 ps"
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--bytes", "0"), "at least one byte"),
        (("--bytes", "-4"), "a number of bytes"),
        (("--bytes", "1e9"), "a number of at least zero and a unit"),
        (("--bytes", "3 parsecs"), "unit 'parsecs'"),
        (("--bytes", ""), "--bytes"),
        (("--bytes", "0.3 KiB"), "a whole number of bytes"),
        (("--bytes", "7GiB"), "at most 6442450944 bytes of a slice"),
        (("--bytes", "9" * 40), "--bytes"),
        (("--case", "pe_locla"), "did you mean 'pe_local'?"),
        (("--case", "xyz"), "one of host_write_near, "),
        (("--case", "hot_8"), "it has 4 PEs a cube, not 8"),
        (("--machine", "ahbm"), "--machine 2 times"),
        (("--set", "cube.nok.kind=ring"), "--set cube.nok"),
        (("--engine", "fast"), "engine"),
        (("extra",), "extra"),
    ],
)
def test_wrong_input_is_one_message_and_status_2(
    probe: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    plot = tmp_path / "plot.svg"
    status, output, errors = probe(*SMALL, *arguments, "--plot", str(plot))
    assert (status, output) == (2, "")
    assert message in errors
    assert errors.count("error: ") == 1
    assert "Traceback" not in errors
    assert "/" not in errors.split("error: ")[0], "a row ran before the input was refused"
    assert list(tmp_path.iterdir()) == []


def test_wrong_input_in_json_is_a_document_of_the_failure(probe: Run) -> None:
    status, output, _ = probe(*SMALL, "--bytes", "3 parsecs", "--json")
    assert status == 2
    assert json.loads(output)["error"]["where"] == "--bytes"


def test_a_plot_is_written_beside_the_document(probe: Run, tmp_path: Path) -> None:
    plot = tmp_path / "probe.svg"
    plot.write_text("an older one")
    status, output, _ = probe(*ONE_ROW, "--plot", str(plot), "--json")
    assert (status, json.loads(output)["ok"]) == (0, True)
    assert plot.read_text().startswith("<svg ")
    assert list(tmp_path.iterdir()) == [plot]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plot.png", "a name that ends in .svg"),
        ("plot", "a name that ends in .svg"),
        ("no/plot.svg", "no directory"),
        ("taken.svg", "a directory"),
    ],
)
def test_a_plot_that_cannot_be_written_is_refused_before_anything_runs(
    probe: Run, tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "taken.svg").mkdir()
    status, output, errors = probe(*ONE_ROW, "--plot", str(tmp_path / name))
    assert (status, output) == (2, "")
    assert message in errors
    assert "1/1" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["taken.svg"]


def test_a_machine_that_is_not_there_is_refused(probe: Run) -> None:
    status, output, errors = probe("--machine", "ahbn")
    assert (status, output) == (2, "")
    assert "did you mean 'ahbm'?" in errors


def test_a_short_row_is_the_mean_over_refresh_phases(probe: Run) -> None:
    _, output, _ = probe(*ONE_ROW, "--json")
    (row,) = ProbeRecord.model_validate_json(output).cases
    phases = row.phases
    assert phases is not None
    assert (phases.count, phases.reason) == (16, "limit")
    assert phases.min_ps == row.latency_ps < phases.mean_ps < phases.max_ps
    assert phases.max_ps - phases.min_ps > 530_000 - 3_900_000 // 16  # a refresh but for a step
    assert row.ratio == phases.mean_ps / row.bound_ps
    assert row.bandwidth_gbs == 1000 * row.bytes / phases.mean_ps
    _, table, _ = probe(*ONE_ROW)
    line = next(line for line in table.splitlines() if line.lstrip().startswith("4 KiB"))
    width = f"{100 * (phases.relative_half_width or 0):.1f}"
    assert line.split()[2:5] == [str(round(phases.mean_ps) / 1000), "ns", width]
    ends = f"{format_ps(phases.min_ps)} to {format_ps(phases.max_ps)}, 16 phases"
    assert table.splitlines()[table.splitlines().index(line) + 1].strip() == ends


def test_too_few_phases_claim_no_precision(probe: Run) -> None:
    _, table, _ = probe(*ONE_ROW, "--phases", "2")
    line = next(line for line in table.splitlines() if line.lstrip().startswith("4 KiB"))
    assert line.split()[4] == "?"


times = st.integers(0, 10**9)
breakdowns = st.builds(
    Breakdown,
    overhead=times,
    wire=times,
    serialisation=times,
    queueing=times,
    memory=times,
    refresh=times,
)


@given(breakdowns)
def test_a_bar_is_full_and_no_part_is_off_by_a_letter(parts: Breakdown) -> None:
    bar = bar_of(parts)
    total_ps = sum(part_ps for _, part_ps in parts)
    assert len(bar) == (BAR_LETTERS if total_ps else 0)
    for name, part_ps in parts:
        if total_ps:
            assert abs(bar.count(name[0]) - BAR_LETTERS * part_ps / total_ps) < 1


@given(breakdowns)
def test_the_parts_of_a_bar_stand_in_the_order_of_the_record(parts: Breakdown) -> None:
    order = [name[0] for name, _ in parts]
    places = [order.index(letter) for letter in bar_of(parts)]
    assert places == sorted(places)
