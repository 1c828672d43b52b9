"""``tilewright validate``: all oracles end to end, its document, its page and its statuses."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.kinds import needs_both_engines
from tilewright.cli.command import validate as command
from tilewright.cli.main import main
from tilewright.engine import EngineKind
from tilewright.validation.finding import Finding, Oracle, OracleGroup, exact
from tilewright.validation.run import run_oracles

PAGE = Path(__file__).parents[3] / "docs" / "validation.md"
FIELDS = {"name", "group", "unit", "rule", "expected", "found", "error", "tolerance", "ok"}


@needs_both_engines  # the reference engine takes minutes over the whole table
@pytest.mark.timeout(180)
def test_all_oracles_hold_and_the_page_of_the_documentation_is_fresh(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "validation.md"
    status = main(["validate", "--json", "--engine", "native", "--markdown", str(page)])
    output, progress = capsys.readouterr()
    document = json.loads(output)
    assert [row["name"] for row in document["oracles"] if not row["ok"]] == []
    assert (status, document["ok"], document["kind"]) == (0, True, "validate")
    assert all(set(row) == FIELDS for row in document["oracles"])
    assert {row["group"] for row in document["oracles"]} == {each.value for each in OracleGroup}
    assert all(row["error"] <= row["tolerance"] for row in document["oracles"])
    assert all(f"{group.value}: " in progress for group in OracleGroup)
    stale = "run: tilewright validate --markdown docs/validation.md"
    assert page.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8"), stale


def document_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["validate", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


@needs_both_engines
def test_both_engines_find_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    documents = [
        document_of(capsys, "--group", "conservation", "--engine", engine)
        for engine in ("native", "reference")
    ]
    assert [document["versions"]["engine"] for document in documents] == ["native", "reference"]
    assert documents[0]["oracles"] == documents[1]["oracles"]


def wrong(_kind: EngineKind) -> Finding:
    return exact(505, 506, "ps")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    table = (Oracle("QU6 a pipeline [of 3]", OracleGroup.QUEUES, wrong),)
    monkeypatch.setattr(command, "run_oracles", partial(run_oracles, oracles=table))


@pytest.mark.usefixtures("broken")
def test_an_oracle_that_fails_is_told_and_ends_with_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["validate"]) == 1
    output = capsys.readouterr().out
    row = next(line for line in output.splitlines() if "QU6" in line)
    cells = ["505", "506", "1", "0", "FAILS"]
    assert row.split() == [*cells, "QU6", "a", "pipeline", "[of", "3]", "(ps)"]
    assert output.splitlines()[0] == "queues"
    assert "0 of 1 oracles hold." in output
    assert "These do not:\n  QU6 a pipeline [of 3]\n" in output


def test_slow_oracles_are_left_out_and_named_unless_all_are_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = (
        Oracle("QU6 quick", OracleGroup.QUEUES, lambda _: exact(1, 1, "ps")),
        Oracle("QU7 slow", OracleGroup.QUEUES, wrong, is_slow=True),
    )
    monkeypatch.setattr(command, "run_oracles", partial(run_oracles, oracles=table))
    assert main(["validate"]) == 0
    assert "Not run: 1 slow oracles; --all runs them." in capsys.readouterr().out
    assert main(["validate", "--all"]) == 1
    assert "QU7 slow" in capsys.readouterr().out


@pytest.mark.usefixtures("broken")
def test_a_failing_run_writes_its_page_all_the_same(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert main(["validate", "--json", "--markdown", str(page)]) == 1
    assert "**FAILS**" in page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--group", "hbn"), "hbn"),
        (("--engine", "fast"), "fast"),
        (("--group", "hbm", "--markdown", "page.md"), "--markdown with --group hbm"),
        (("--markdown", "/no/such/directory/page.md"), "a directory to write the page into"),
        (("--markdown", "page.md", "--all"), "--markdown with --all"),
    ],
)
def test_a_wrong_option_is_wrong_input(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", *arguments]) == 2
    assert message in capsys.readouterr().err
