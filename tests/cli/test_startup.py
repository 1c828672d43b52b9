import pytest

from tilewright.cli.main import main
from tilewright.cli.startup import announced_engine, engine_line, machine_of
from tilewright.engine import EngineKind
from tilewright.errors import BenchError


def test_an_engine_that_was_asked_for_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert announced_engine(EngineKind.REFERENCE) is EngineKind.REFERENCE
    assert capsys.readouterr().err.startswith("engine: reference")


def test_keys_of_a_machine_that_have_no_effect_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert machine_of("crossbar-chip", ["sip.count=1"]).grid.num_sips == 1
    assert capsys.readouterr().err == ""
    machine_of("crossbar-chip", ["cube.noc.bytes_per_us=1000"])
    assert capsys.readouterr().err.startswith("warning: ")


@pytest.mark.parametrize(
    ("bench", "runs"),
    [
        ("collectives", "tilewright.cli.command.bench.collectives.run_collectives_bench"),
        ("language", "tilewright.cli.command.bench.speed.run_language_bench"),
    ],
)
def test_a_bench_that_simulates_tells_its_engine_first(
    bench: str, runs: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_named: object) -> None:
        raise BenchError("bench", "a test", "no more than a line", "stop here")

    monkeypatch.setattr(runs, refuse)
    assert main(["bench", bench]) == 2
    assert capsys.readouterr().err.startswith("engine: ")


def test_without_a_compiled_core_the_line_says_so_and_how_to_get_it() -> None:
    line = engine_line("reference", native_built=False)
    assert line.startswith("engine: reference (pure Python")
    assert "no compiled core" in line
    assert "install a C++ compiler" in line
    assert "\n" not in line


def test_a_reference_engine_that_was_chosen_is_not_reported_as_missing_its_core() -> None:
    line = engine_line("reference", native_built=True)
    assert line.startswith("engine: reference (pure Python")
    assert "no compiled core" not in line
