"""Runs every fenced ``python`` and ``console`` block of the documents.

A block with ``<!-- not run: reason -->`` on the line before it is left out.
"""

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
FENCE = re.compile(
    r"(?P<marker><!-- not run: \S.* -->\n+)?^```(?P<language>python|console)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
OUTPUT_RULES = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True, slots=True)
class Example:
    place: str
    language: str
    text: str
    is_run: bool

    def run(self, directory: Path) -> None:
        if self.language == "console":
            run_console(self.text)
        elif ">>> " in self.text:
            run_doctest(self.place, self.text)
        else:
            run_script(self.text, directory)


def find_examples(name: str, document: str) -> Iterator[Example]:
    for match in FENCE.finditer(document):
        line = document.count("\n", 0, match.start("language")) + 1
        is_run = match["marker"] is None
        yield Example(f"{name}:{line}", match["language"], match["text"], is_run)


def run_script(text: str, directory: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", text]
    finished = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def run_doctest(place: str, text: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, {}, place, place, 0)
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=OUTPUT_RULES).run(test, out=report.append)
    assert results.failed == 0, "".join(report)


def run_console(text: str) -> None:
    """Run each ``$ command`` at the root of the project; output that is shown must be true."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = step.partition("\n")
        finished = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, f"{command}: {finished.stderr}"
        is_true = not shown or doctest.OutputChecker().check_output(
            shown, finished.stdout, OUTPUT_RULES
        )
        assert is_true, f"{command} printed:\n{finished.stdout}"


def all_examples() -> list[Example]:
    return [
        example
        for path in DOCUMENTS
        for example in find_examples(path.relative_to(ROOT).as_posix(), path.read_text())
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "example", [pytest.param(e, id=e.place) for e in all_examples() if e.is_run]
)
def test_an_example_of_the_documents_does_what_it_shows(example: Example, tmp_path: Path) -> None:
    example.run(tmp_path)


MARKED = "<!-- not run: takes a minute -->\n```console\n$ false\n```\n"
UNMARKED = "text\n\n```python\n>>> 1 + 1\n2\n```\n\n```text\n$ false\n```\n"


def test_blocks_are_found_with_their_line_and_a_marked_one_is_left_out() -> None:
    examples = list(find_examples("a.md", MARKED + UNMARKED))
    assert [(e.place, e.language, e.is_run) for e in examples] == [
        ("a.md:2", "console", False),
        ("a.md:7", "python", True),
    ]


def test_a_marker_without_a_reason_does_not_count() -> None:
    examples = find_examples("a.md", MARKED.replace("takes a minute", ""))
    assert [example.is_run for example in examples] == [True]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("console", "$ false\n"),
        ("console", "$ echo one\ntwo\n"),
        ("python", ">>> 1 + 1\n3\n"),
        ("python", "raise SystemExit(1)\n"),
    ],
)
def test_an_example_that_does_not_hold_fails(tmp_path: Path, language: str, text: str) -> None:
    with pytest.raises(AssertionError):
        Example("a.md:1", language, text, is_run=True).run(tmp_path)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("console", "$ echo one two three\none ... three\n$ true\n"),
        ("python", ">>> print('one two three')\none ... three\n"),
        ("python", "assert 1 + 1 == 2\n"),
    ],
)
def test_an_example_that_holds_passes(tmp_path: Path, language: str, text: str) -> None:
    Example("a.md:1", language, text, is_run=True).run(tmp_path)
