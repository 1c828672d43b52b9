"""The shell, run on a small app that can end in every way there is."""

import json
import sys
from collections.abc import Callable
from typing import Annotated, cast

import pytest
import typer
from rich.text import Text
from typer.core import TyperGroup

from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.output import note
from tilewright.cli.shell import run_command
from tilewright.errors import InternalError, SpecError, TilewrightError
from tilewright.records import Document

Run = Callable[..., tuple[int, str, str]]


class Answer(Document):
    answer: int


app = typer.Typer()
group = typer.Typer()
app.add_typer(group, name="group")


@app.command()
def works(
    count: int = 1,
    word: Annotated[list[str] | None, typer.Option()] = None,
    _json: JsonOption = False,
) -> Outcome:
    note("working")
    sys.stdout.write("chatter of a library\n")
    return Outcome(Answer(answer=count), Text(f"the answer is {count}{''.join(word or [])}"))


@group.command()
def disproves(_json: JsonOption = False) -> Outcome:
    return Outcome(Answer(answer=0), "it does not hold", passed=False)


@app.command()
def raises(kind: str, _json: JsonOption = False) -> Outcome:
    failures: dict[str, BaseException] = {
        "spec": SpecError("cube.hbm", "0 channels", "at least one", "set pseudo_channels"),
        "lines": TilewrightError("run", "2 waiters:\na\nb", "none", "look"),
        "internal": InternalError("engine", "credits -1", "never negative", "see the state"),
        "interrupt": KeyboardInterrupt(),
        "escape": SpecError("a\x1b[31m.yaml", "a\tb\u2028", "none", "look"),
        "bug": ZeroDivisionError("division by zero"),
        "memory": MemoryError("Unable to allocate 9 TiB"),
    }
    raise failures[kind]


@app.command()
def forgets(_json: JsonOption = False) -> None:
    """Return nothing, which no command may do."""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_and_capture(*arguments: str) -> tuple[int, str, str]:
        status = run_command(cast(TyperGroup, typer.main.get_command(app)), arguments)
        streams = capsys.readouterr()
        return int(status), streams.out, streams.err

    return run_and_capture


def test_a_command_that_works_prints_its_view_and_ends_with_status_0(run: Run) -> None:
    status, out, err = run("works", "--count", "42")
    assert status == 0
    assert out.splitlines()[-1] == "the answer is 42"
    assert err == "working\n"


def test_an_option_of_several_values_may_be_repeated(run: Run) -> None:
    status, out, _ = run("works", "--word", ", a", "--word", " and b")
    assert (status, out.splitlines()[-1]) == (0, "the answer is 1, a and b")


def test_a_line_of_text_stays_whole_in_a_pipe(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    status, out, _ = run("works", "--word", " of many words" * 5)
    assert (status, len(out.splitlines()[-1])) == (0, len("the answer is 1") + 5 * 14)


def test_under_json_only_one_document_reaches_standard_output(run: Run) -> None:
    status, out, err = run("works", "--json")
    assert (status, out) == (0, '{"answer":1}\n')
    assert err == "working\nchatter of a library\n"


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_check_that_fails_ends_with_status_1_and_still_shows_its_result(
    run: Run, option: list[str]
) -> None:
    status, out, err = run("group", "disproves", *option)
    assert (status, err) == (1, "")
    assert out == ('{"answer":0}\n' if option else "it does not hold\n")


def test_wrong_input_prints_the_four_parts_without_a_traceback(run: Run) -> None:
    status, out, err = run("raises", "spec")
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        "error: cube.hbm",
        "  found     0 channels",
        "  expected  at least one",
        "  to do     set pseudo_channels",
    ]


def test_a_part_of_many_lines_stays_in_its_column(run: Run) -> None:
    _, _, err = run("raises", "lines")
    assert "  found     2 waiters:\n            a\n            b\n  expected  none" in err


def test_an_error_shows_what_a_terminal_would_obey(run: Run) -> None:
    _, _, err = run("raises", "escape")
    assert err.splitlines()[:2] == ["error: a\\x1b[31m.yaml", "  found     a\\tb\\u2028"]


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_an_argument_that_is_no_text_is_refused(run: Run, option: tuple[str, ...]) -> None:
    status, out, err = run("raises", "a\udcffb", *option)
    told = json.loads(out)["error"]["found"] if option else err
    assert status == 2
    assert "the argument 'a\\udcffb'" in told
    assert "Traceback" not in err


def test_wrong_input_under_json_is_one_document_with_the_four_parts(run: Run) -> None:
    status, out, err = run("raises", "spec", "--json")
    assert (status, err) == (2, "")
    error = {
        "type": "SpecError",
        "where": "cube.hbm",
        "found": "0 channels",
        "expected": "at least one",
        "fix": "set pseudo_channels",
    }
    assert json.loads(out) == {"ok": False, "error": error, "problems": [error]}


@pytest.mark.parametrize(
    ("line", "found", "expected", "place"),
    [
        ("", "Missing command", "one of the commands: works, ", ""),
        ("group", "Missing command", "one of the commands: disproves", "group "),
        ("nothing", "No such command 'nothing'", "one of the commands: works, ", ""),
        ("group x", "No such command 'x'", "one of the commands: disproves", "group "),
        ("works --colour", "No such option: --colour", "an option that the command has", "works "),
        ("works --count x", "Invalid value for '--count'", "a value that the option", "works "),
        ("works --count x", "'--count': 'x'", "takes: a valid integer", "works "),
        ("works --count=x", "'--count': 'x'", "takes: a valid integer", "works "),
        ("works --count", "'--count' requires an argument", "the option in the form", "works "),
        ("works --count 1 --count=2", "--count 2 times", "it once", "works "),
        ("works extra", "unexpected extra argument", "in the form that the help shows", "works "),
        ("raises", "Missing argument", "every argument that the command needs", "raises "),
        ("group disproves --x=1", "No such option: --x", "an option that", "group disproves "),
    ],
)
def test_a_wrong_command_line_ends_with_status_2_and_names_its_help(
    run: Run, line: str, found: str, expected: str, place: str
) -> None:
    status, out, err = run(*line.split())
    assert (status, out) == (2, "")
    rows = err.splitlines()
    assert rows[1].startswith("  found     ")
    assert found in rows[1]
    assert rows[2].startswith("  expected  ")
    assert expected in rows[2]
    assert rows[3] == f"  to do     run: tilewright {place}--help"


@pytest.mark.parametrize(
    ("line", "example"),
    [
        ("--json works --count 2", "tilewright works --count 2 --json"),
        ("group --json disproves", "tilewright group disproves --json"),
        ("--json", "tilewright COMMAND --json"),
    ],
)
def test_json_before_its_command_is_told_its_place(run: Run, line: str, example: str) -> None:
    status, out, err = run(*line.split())
    assert (status, err) == (2, "")
    assert json.loads(out)["error"]["fix"] == f"put --json after the command: {example}"


def test_a_wrong_command_line_under_json_is_one_document(run: Run) -> None:
    status, out, err = run("works", "--colour", "--json")
    assert (status, err) == (2, "")
    assert json.loads(out)["error"]["type"] == "UsageError"


def test_an_interrupt_ends_with_status_130_and_one_line(run: Run) -> None:
    assert run("raises", "interrupt") == (130, "", "interrupted; nothing half-done is left\n")


def test_an_interrupt_under_json_is_one_document(run: Run) -> None:
    status, out, _ = run("raises", "interrupt", "--json")
    assert status == 130
    assert json.loads(out)["error"]["type"] == "InterruptError"


def test_a_broken_rule_of_our_own_says_so_and_how_to_report_it(run: Run) -> None:
    status, out, err = run("raises", "internal")
    assert (status, out) == (1, "")
    assert "credits -1" in err
    assert "This is a bug in tilewright" in err
    assert "Please report it" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_an_unforeseen_exception_is_a_bug_with_its_traceback_on_standard_error(
    run: Run, option: list[str]
) -> None:
    status, out, err = run("raises", "bug", *option)
    assert status == 1
    assert "ZeroDivisionError: division by zero" in err
    assert "Traceback" in err
    assert [json.loads(line)["error"]["type"] for line in out.splitlines()] == (
        ["InternalError"] if option else []
    )


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_no_memory_left_is_one_message_and_no_bug(run: Run, option: list[str]) -> None:
    status, out, err = run("raises", "memory", *option)
    assert status == 2
    assert "Traceback" not in err
    assert "no memory left (Unable to allocate 9 TiB)" in (out if option else err)


def test_a_command_without_an_outcome_is_a_bug(run: Run) -> None:
    status, _, err = run("forgets")
    assert status == 1
    assert "found     None" in err
    assert "expected  an Outcome" in err


def test_every_command_shows_its_json_option_in_its_help(run: Run) -> None:
    status, out, _ = run("works", "--help")
    assert status == 0
    assert "--json" in out
