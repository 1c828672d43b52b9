import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tilewright.cli.main import main

SMALL = ["--source", "recall", "--context", "64", "--steps", "4", "--cases", "2"]
FIELDS = (
    "flow",
    "source",
    "context",
    "budget",
    "pages",
    "mass",
    "mass_ci",
    "worst_head_mass",
    "output_error",
    "oracle_ratio",
    "stability",
    "bytes",
    "dense_bytes",
    "kl",
    "nll",
    "needle_hits",
    "needle_cases",
    "latency_ps",
    "dense_latency_ps",
)


def compare(*arguments: str) -> int:
    return main(["attention", "compare", *SMALL, "--page-size", "4", *arguments])


def test_a_document_has_all_figures_of_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("--flows", "quest,streaming_llm", "--budgets", "4,99", "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert len(found["rows"]) == 4
    assert all(set(FIELDS) <= set(row) for row in found["rows"])
    assert found["compare_s"] > 0
    whole = [row for row in found["rows"] if row["budget"] == 99]
    assert [(row["mass"], row["kl"]) for row in whole] == [(pytest.approx(1.0), 0.0)] * 2
    low, high = found["rows"][0]["mass_ci"]
    assert low < found["rows"][0]["mass"] < high
    assert len(found["source"]["model_hash"]) == 64
    assert found["source"]["text_hash"] is None


def test_people_see_a_table_and_an_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("--flows", "oracle,random", "--budgets", "4") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    heading = lines[2].split()
    assert heading == (
        ["pages", "mass", "worst", "best", "error", "stable", "bytes", "KL", "NLL", "ppl", "hits"]
    )
    assert "oracle" in lines
    assert "  4 pages: oracle > random" in lines


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_a_plot_is_whole_and_its_trials_stand_next_to_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, suffix: str
) -> None:
    plot = tmp_path / f"out.{suffix}"
    for _ in range(2):
        assert compare("--flows", "quest,random", "--budgets", "4,8", "--plot", str(plot)) == 0
    assert "8 trials are from an earlier run." in capsys.readouterr().out
    assert (tmp_path / f"out.{suffix}.state.json").exists()
    text = plot.read_text(encoding="utf-8")
    start, stop = text.index("<svg"), text.index("</svg>") + len("</svg>")
    tips = [one.text for one in ElementTree.fromstring(text[start:stop]).iter() if one.text]
    for flow in ("quest", "random"):
        for budget in (4, 8):
            assert any(tip.startswith(f"{flow}, {budget} pages: ") for tip in tips)
    assert set(re.findall(r"https?:[^\"]*", text)) == {"http://www.w3.org/2000/svg"}
    assert ("<pre>" in text) is (suffix == "html")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--flows", "quest,,random"], "fill the gap"),
        (["--flows", "no_such_flow"], "no_such_flow"),
        (["--flows", "quest_mla"], "kind mla"),
        (["--budgets", "4,x"], "a number of pages above 0"),
        (["--budgets", "4,4"], "a budget twice"),
        (["--budgets", "1"], "reserved"),
        (["--plot", "out.png"], ".svg or .html"),
        (["--state", "no/such/folder.json"], "no directory"),
        (["--source", "dreams"], "dreams"),
    ],
)
def test_wrong_input_ends_with_2_and_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    given = [] if "--source" in arguments else SMALL
    assert main(["attention", "compare", *given, *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in " ".join(captured.err.split())


def timed(*arguments: str) -> int:
    return compare("--flows", "streaming_llm,quest", "--budgets", "4", *arguments)


def test_a_machine_gives_every_row_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--batch", "2", "--placement", "stripe", "--set", "pe.vector.lanes=256")
    assert timed("--machine", "ahbm-small", *options, "--json") == 0
    streams = capsys.readouterr()
    assert "engine: " in streams.err
    found: dict[str, Any] = json.loads(streams.out)
    assert [row["machine"] for row in found["rows"]] == ["ahbm-small"] * 2
    assert all(row["latency_ps"] > 0 for row in found["rows"])
    assert len({row["dense_latency_ps"] for row in found["rows"]}) == 1
    assert {row["latency_selection"] for row in found["rows"]} == {"recorded"}
    (machine,) = found["latency"]["machines"]
    assert machine["overrides"] == ["pe.vector.lanes=256"]
    step = found["latency"]["step"]
    assert (step["batch"], step["placement"], step["dtype"]) == (2, "stripe", "float16")
    assert (step["kv_heads"], step["query_heads"], step["key_dim"]) == (2, 2, 32)
    assert found["latency"]["tokens"] == 65


def test_the_same_command_gives_the_same_times_and_takes_them_from_its_state(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ("--machine", "ahbm-small", "--plot", str(tmp_path / "out.svg"), "--json")
    found = []
    for _ in range(2):
        assert timed(*arguments) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert [one["latencies_kept"] for one in found] == [0, 3]
    assert found[0]["rows"] == found[1]["rows"]
    text = (tmp_path / "out.svg").read_text(encoding="utf-8")
    assert "attention mass on ahbm-small" in text


@pytest.mark.parametrize(
    "option", [("--placement", "cube"), ("--batch", "4"), ("--dtype", "float32"), ("--set", "a=1")]
)
def test_an_option_of_machines_without_a_machine_is_refused(
    capsys: pytest.CaptureFixture[str], option: tuple[str, str]
) -> None:
    assert timed(*option) == 2
    assert f"{option[0]}" in capsys.readouterr().err


def test_a_machine_that_is_none_is_refused_before_any_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert timed("--machine", "no_such_machine") == 2
    captured = capsys.readouterr()
    assert "no_such_machine" in captured.err
    assert "dense attention of case" not in captured.err
