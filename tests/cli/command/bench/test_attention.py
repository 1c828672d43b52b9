"""``tilewright bench attention``: its document, and what it says without its peer."""

import json
import subprocess
import sys

import pytest

from tilewright.cli.main import main

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from tilewright.cli.main import main
sys.exit(main(["bench", "attention", "--json"]))
"""


def test_the_attention_benchmark_gives_ratio_and_growth(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """At a small size: the claim itself is about 128K tokens and needs minutes."""
    pytest.importorskip("torch")
    small = ("--context", "4096", "--requests", "1", "--rounds", "1")
    status = main(["bench", "attention", "--json", *small])
    document = json.loads(capsys.readouterr().out)
    assert status == (0 if document["passed"] else 1)
    assert document["quest_128k_vs_dense_torch"] > 0
    short, long = document["selection"]
    assert (short["pages"], long["pages"]) == (64, 256)
    ratio = long["seconds"] / short["seconds"] / 4
    assert document["growth"] == pytest.approx(ratio)
    assert document["dense_error"] < 1e-5
    assert document["workload"]["rows"] == 8


def test_without_its_peer_the_benchmark_names_the_extra_and_exits_2() -> None:
    command = (sys.executable, "-c", WITHOUT_TORCH)
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    error = json.loads(run.stdout)["error"]
    assert error["type"] == "MissingExtraError"
    assert "'.[bench]'" in error["fix"]


@pytest.mark.parametrize("arguments", [("--context", "16"), ("--rounds", "0"), ("--threads", "x")])
def test_a_wrong_option_is_wrong_input(arguments: tuple[str, ...]) -> None:
    assert main(["bench", "attention", *arguments]) == 2
