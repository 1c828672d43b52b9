import json
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
    assert ("http" in text.replace("http://www.w3.org/2000/svg", "")) is False
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
