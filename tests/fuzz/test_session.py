"""Sessions of random inputs: what counts as a finding, and that nothing else does."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.fuzz import session as session_module
from tests.fuzz.command import run_command
from tests.fuzz.generator import FindingError, Generator, Random, random_of
from tests.fuzz.session import Session
from tests.fuzz.table import build_table
from tests.fuzz.worker import Task
from tilewright.cli.main import main


def findings_of(run: object, *, inputs: int = 3) -> list[tuple[int, str]]:
    """Return index and text of the findings of a generator."""
    generator = Generator("mine", "", run, 1)  # type: ignore[arg-type]  # a lambda that raises
    session = Session({"mine": generator})
    session.run_inputs([Task("mine", index) for index in range(inputs)])
    assert session.shares["mine"].inputs == inputs
    return [(each.task.index, each.text) for each in session.findings]


def first_number(rng: Random) -> int:
    return rng.randrange(10**9)


def test_inputs_without_findings_are_counted() -> None:
    assert findings_of(lambda _rng, _folder: None) == []


def test_an_exception_is_a_finding_with_its_traceback() -> None:
    (finding,) = findings_of(lambda _rng, _folder: [][0], inputs=1)
    assert finding[1].startswith("Traceback")
    assert "IndexError" in finding[1]


def test_a_process_that_dies_is_a_finding_and_the_next_input_runs() -> None:
    first = first_number(random_of(0, "mine", 1))

    def die_at_one(rng: Random, folder: Path) -> None:
        del folder
        if first_number(rng) == first:
            os.kill(os.getpid(), signal.SIGSEGV)

    ((index, text),) = findings_of(die_at_one)
    assert index == 1
    assert text.startswith("the process ended: signal SIGSEGV")
    assert "in die_at_one" in text


def test_an_input_that_does_not_end_is_a_finding_with_its_stack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_module, "MAX_CPU_SECONDS", 0.5)

    def spin(rng: Random, folder: Path) -> None:
        del rng, folder
        while True:
            pass

    (finding,) = findings_of(spin, inputs=1)
    assert "no end after" in finding[1]
    assert "in spin" in finding[1]


def test_an_input_that_waits_for_ever_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "MAX_WALL_SECONDS", 0.5)
    (finding,) = findings_of(lambda _rng, _folder: time.sleep(1000), inputs=1)
    assert "no end after 0 s of CPU time" in finding[1]


def test_memory_beyond_the_limit_is_a_finding() -> None:
    (finding,) = findings_of(lambda _rng, _folder: bytearray(1 << 40), inputs=1)
    assert "MemoryError" in finding[1]


def test_an_input_depends_on_seed_name_and_index_alone() -> None:
    numbers = {
        first_number(random_of(seed, name, index))
        for seed in range(3)
        for name in ("a", "b")
        for index in range(3)
    }
    assert len(numbers) == 18
    assert first_number(random_of(1, "a", 2)) in numbers


def test_time_is_shared_evenly() -> None:
    def work(rng: Random, folder: Path) -> None:
        del rng, folder
        end = time.process_time() + 0.01
        while time.process_time() < end:
            pass

    generators = [
        Generator("slow", "", work, 1),
        Generator("quick", "", lambda _rng, _folder: None, 1),
    ]
    session = Session(build_table(generators))
    session.run_for(1.0)
    slow, quick = session.shares["slow"], session.shares["quick"]
    assert 0 < slow.inputs < quick.inputs


def test_two_generators_of_one_name_are_refused() -> None:
    generator = Generator("mine", "", lambda _rng, _folder: None, 1)
    with pytest.raises(ValueError, match="two generators 'mine'"):
        build_table([generator, generator])


def test_a_command_that_ends_by_the_rules_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command("machine", "check", "ahbm-small", "--json").status == 0
    assert run_command("machine", "check", "none").status == 2


@pytest.mark.parametrize(
    ("status", "text", "words"),
    [
        (1, "Traceback (most recent call last):\n", "Traceback"),
        (1, "This is a bug in tilewright, not in your input.\n", "a bug"),
        (139, "", "exit status 139"),
        (2, "", "refused without a word"),
    ],
)
def test_a_command_that_breaks_a_rule_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, status: int, text: str, words: str
) -> None:
    def broken(arguments: list[str]) -> int:
        del arguments
        sys.stderr.write(text)
        return status

    monkeypatch.setattr("tests.fuzz.command.main", broken)
    with pytest.raises(FindingError, match=words):
        run_command("list")


def test_a_file_that_stays_behind_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def leave(arguments: list[str]) -> int:
        Path(".tilewright-0.tmp").touch()
        return main(arguments)

    monkeypatch.setattr("tests.fuzz.command.main", leave)
    with pytest.raises(FindingError, match="left behind"):
        run_command("list")
