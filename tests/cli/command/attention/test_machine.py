"""``tilewright attention run --backend machine``: its documents, its view, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from tilewright.cli.main import main

SMALL = (
    *("attention", "run", "--backend", "machine", "--machine", "ahbm-small"),
    *("--contexts", "40,300", "--head-dim", "32", "--budget", "6"),
)


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_a_small_step_has_values_that_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(capsys, *SMALL)
    assert found["values_ok"] is True
    assert found["selection"] == "scores"
    assert found["sizes"]["contexts"] == [40, 300]
    assert {stage["name"] for stage in found["stages"]} >= {"scoring", "attention", "launch"}
    for name in ("latency_ps", "bytes"):
        assert sum(stage[name] for stage in found["stages"]) == found["sparse"][name]


def test_the_view_names_stages_speed_up_and_bottleneck(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--phases", "1"]) == 0
    text = capsys.readouterr().out
    for words in ("scoring", "speed-up", "values right", "bottleneck"):
        assert words in text
    assert next(line for line in text.splitlines() if "over refresh" in line).count("one of") == 2


def test_several_machines_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--machine", "crossbar-chip", "--no-data", "--selection", "recent")
    found = run_json(capsys, *SMALL, *arguments, "--phases", "3")
    assert [row["machine_source"] for row in found["rows"]] == ["ahbm-small", "crossbar-chip"]
    assert all(row["selection"] == "recent" for row in found["rows"])


def test_latencies_side_by_side_have_their_half_widths(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    arguments = ("--machine", "ahbm-small", "--no-data", "--selection", "recent", "--phases", "9")
    assert main([*SMALL, *arguments]) == 0
    _, _, beside = capsys.readouterr().out.partition("Side by side")
    rows = [line for line in beside.splitlines() if "ahbm-small" in line]
    assert [line.count("±") for line in rows] == [2, 2]


def test_a_saved_selection_is_read_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "pages.json"
    first = run_json(capsys, *SMALL, "--phases", "2", "--save-selection", str(file))
    again = run_json(capsys, *SMALL, "--phases", "2", "--selection", str(file))
    assert again["selection"] == "recorded"
    assert again["sparse"]["latency_ps"] == first["sparse"]["latency_ps"]
    assert main([*SMALL, "--page-size", "8", "--selection", str(file)]) == 2
    assert "found page size 16 expected page size 8" in " ".join(capsys.readouterr().err.split())


def test_a_tuned_tiling_stands_in_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(capsys, *SMALL, "--phases", "2", "--tune")
    assert found["values_ok"] is True
    assert found["notes"][0].startswith("tiling: best of ")


def test_large_steps_leave_values_out_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("attention", "run", "--backend", "machine", "--machine", "ahbm-small")
    found = run_json(
        capsys, *command, "--context", "32768", "--batch", "1", "--kv-heads", "5", "--budget", "9"
    )
    assert not found["carries_data"]
    assert found["selection"] == "uniform"
    assert found["notes"][0].startswith("without values: keys and values have 80 MiB")


def test_the_sizes_of_a_model_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("attention", "run", "--backend", "machine", "--machine", "ahbm-small")
    found = run_json(
        capsys, *command, "--model", "llama-3-8b", "--batch", "1", "--context", "256", "--no-data"
    )
    sizes = found["sizes"]
    assert (sizes["kv_heads"], sizes["query_heads"], sizes["key_dim"]) == (8, 4, 128)
    assert sizes["layers"] == 32


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--data", "--selection", "recent"), "--data and --selection recent"),
        (("--steps", "3"), "--steps"),
        (("--model", "llama-3-8b"), "--model and --head-dim"),
        (("--selection", "nothing.json"), "a file that cannot be read"),
        (("--flow", "nowhere"), "nowhere"),
    ],
)
def test_wrong_input_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert main([*SMALL, *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flow", "model", "words"),
    [
        ("quest", "deepseek-v2-lite", "the gqa flow 'quest' for deepseek-v2-lite"),
        ("quest_mla", "llama-3-8b", "the mla flow 'quest_mla' for llama-3-8b"),
    ],
)
def test_a_model_of_the_other_kind_is_refused(
    capsys: pytest.CaptureFixture[str], flow: str, model: str, words: str
) -> None:
    command = ("attention", "run", "--backend", "machine", "--flow", flow, "--model", model)
    assert main([*command, "--context", "64"]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--context", "--batch"])
def test_requests_that_are_said_twice_are_refused(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attention", "run", "--backend", "machine", "--contexts", "4,5", option, "2"]) == 2
    assert f"found     {option} 2 beside --contexts 4,5\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--dtype", "int4"), "choose float8_e4m3 or a wider float, or the reference backend"),
        (("--dtype", "int8"), "keys and values on a machine\n  found     int8\n"),
        (("--device", "sip:7"), "'sip:7'"),
    ],
)
def test_what_a_machine_cannot_have_is_refused_before_the_reference_computes(
    option: tuple[str, str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, *option]) == 2
    errors = capsys.readouterr().err
    assert words in errors
    assert "prefilling" not in errors


def test_contexts_that_are_no_numbers_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", "run", "--backend", "machine", "--contexts", "4,no"]) == 2
    assert "whole numbers of 1 and more" in capsys.readouterr().err


def test_options_of_machines_are_refused_by_the_reference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["attention", "run", "--placement", "cube", "--sanitize"]) == 2
    assert "--placement, --sanitize" in capsys.readouterr().err
