"""Runs the fenced ``python`` and ``console`` blocks of the documents, and holds them to their word.

- A block with ``<!-- file: name -->`` on the line before it is a file. A page that shows files is
  run as a reader would follow it: all its blocks in order, in one folder, where each file appears
  as the page shows it. On other pages each block stands for itself, at the root of the project.
- ``<!-- exit status: 2 -->`` before a ``console`` block: its commands end so, and what is shown is
  what they print on standard error. Otherwise they end with 0, and it is standard output.
- ``<!-- not run: reason -->`` leaves a block out.
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
    r"(?:<!-- (?P<mark>not run|file|exit status): (?P<value>\S.*?) -->\n+)?"
    r"^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
OUTPUT_RULES = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
WIDTH = "80"  # columns of a terminal


@dataclass(frozen=True, slots=True)
class Example:
    """One block, and what its mark says about it."""

    place: str
    language: str
    text: str
    mark: str = ""
    value: str = ""

    def run(self, directory: Path) -> None:
        if self.mark == "file":
            write_file(directory, self.value, self.text)
        elif self.language == "console":
            status = int(self.value) if self.mark == "exit status" else 0
            run_console(self.text, directory, status)
        elif ">>> " in self.text:
            run_doctest(self.place, self.text, directory)
        else:
            run_script(self.text, directory)


@dataclass(frozen=True, slots=True)
class Walk:
    """Examples that are run one after the other in one folder."""

    place: str
    examples: tuple[Example, ...]
    at_root: bool


def find_examples(name: str, document: str) -> Iterator[Example]:
    for match in FENCE.finditer(document):
        mark, language = match["mark"] or "", match["language"]
        if mark == "not run" or (mark != "file" and language not in ("python", "console")):
            continue
        line = document.count("\n", 0, match.start("language")) + 1
        yield Example(f"{name}:{line}", language, match["text"], mark, match["value"] or "")


def find_walks(name: str, document: str) -> Iterator[Walk]:
    examples = tuple(find_examples(name, document))
    if any(example.mark == "file" for example in examples):
        yield Walk(name, examples, at_root=False)
        return
    for example in examples:
        yield Walk(example.place, (example,), at_root=example.language == "console")


def write_file(directory: Path, name: str, text: str) -> None:
    assert Path(name).name == name, f"{name}: a file of a page stands in its folder"
    (directory / name).write_text(text)


def run_script(text: str, directory: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", text]
    finished = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def run_doctest(place: str, text: str, directory: Path) -> None:
    """In a process of its own, which may import the files of the page and leaves nothing behind."""
    program = (
        "import doctest, sys\n"
        "text, place, rules = sys.argv[1], sys.argv[2], int(sys.argv[3])\n"
        "test = doctest.DocTestParser().get_doctest(text, {}, place, place, 0)\n"
        "sys.exit(doctest.DocTestRunner(optionflags=rules).run(test).failed > 0)\n"
    )
    command = [sys.executable, "-W", "error", "-c", program, text, place, str(OUTPUT_RULES)]
    finished = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def run_console(text: str, directory: Path, status: int) -> None:
    """Run each ``$ command``; what is shown below it must be true."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = step.partition("\n")
        finished = subprocess.run(
            ["bash", "-c", command],
            cwd=directory,
            env=os.environ | {"PATH": path, "COLUMNS": WIDTH},
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == status, f"{command}: {finished.returncode} {finished.stderr}"
        printed = finished.stdout if status == 0 else finished.stderr
        is_true = not shown or doctest.OutputChecker().check_output(shown, printed, OUTPUT_RULES)
        assert is_true, f"{command} printed:\n{printed}"


def all_walks() -> list[Walk]:
    return [
        walk
        for path in DOCUMENTS
        for walk in find_walks(path.relative_to(ROOT).as_posix(), path.read_text())
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("walk", [pytest.param(walk, id=walk.place) for walk in all_walks()])
def test_the_examples_of_the_documents_do_what_they_show(walk: Walk, tmp_path: Path) -> None:
    for example in walk.examples:
        try:
            example.run(ROOT if walk.at_root else tmp_path)
        except AssertionError as error:
            raise AssertionError(f"{example.place}: {error}") from error


MARKED = "<!-- not run: takes a minute -->\n```console\n$ false\n```\n"
UNMARKED = "text\n\n```python\n>>> 1 + 1\n2\n```\n\n```text\n$ false\n```\n"
WITH_FILE = (
    "<!-- file: a.yaml -->\n```yaml\nname: a\n```\n\n```console\n$ cat a.yaml\nname: a\n```\n"
)


def test_blocks_are_found_with_their_line_and_a_marked_one_is_left_out() -> None:
    examples = list(find_examples("a.md", MARKED + UNMARKED))
    assert [(e.place, e.language) for e in examples] == [("a.md:7", "python")]


def test_a_marker_without_a_reason_does_not_count() -> None:
    examples = find_examples("a.md", MARKED.replace("takes a minute", ""))
    assert [example.language for example in examples] == ["console"]


def test_a_page_that_shows_files_is_one_walk_and_another_page_is_a_walk_for_each_block() -> None:
    assert [len(walk.examples) for walk in find_walks("a.md", WITH_FILE)] == [2]
    assert [len(walk.examples) for walk in find_walks("a.md", UNMARKED + UNMARKED)] == [1, 1]


def test_commands_of_a_page_find_the_files_that_it_shows(tmp_path: Path) -> None:
    (walk,) = find_walks("a.md", WITH_FILE)
    shown, command = walk.examples
    with pytest.raises(AssertionError, match="No such file"):
        command.run(tmp_path)
    shown.run(tmp_path)
    command.run(tmp_path)


def test_python_of_a_page_can_import_a_file_that_it_shows(tmp_path: Path) -> None:
    Example("a.md:1", "python", "five = 5\n", "file", "numbers_of_a.py").run(tmp_path)
    Example("a.md:5", "python", ">>> import numbers_of_a\n>>> numbers_of_a.five\n5\n").run(tmp_path)


def test_a_file_of_a_page_cannot_leave_its_folder(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="stands in its folder"):
        Example("a.md:1", "yaml", "", "file", "../a.yaml").run(tmp_path)


def test_a_command_that_is_to_fail_is_held_to_its_status_and_its_message(tmp_path: Path) -> None:
    def run(command: str, shown: str) -> None:
        Example("a.md:1", "console", f"$ {command}\n{shown}\n", "exit status", "2").run(tmp_path)

    run("echo no >&2; exit 2", "no")
    for command, shown in (("exit 1", ""), ("true", ""), ("echo no >&2; exit 2", "yes")):
        with pytest.raises(AssertionError):
            run(command, shown)


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
        Example("a.md:1", language, text).run(tmp_path)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("console", "$ echo one two three\none ... three\n$ true\n"),
        ("python", ">>> print('one two three')\none ... three\n"),
        ("python", "assert 1 + 1 == 2\n"),
    ],
)
def test_an_example_that_holds_passes(tmp_path: Path, language: str, text: str) -> None:
    Example("a.md:1", language, text).run(tmp_path)
