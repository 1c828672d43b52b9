"""``tilewright bench engine``: its document, and what it says without its peer."""

import json
import subprocess
import sys

import pytest

from tilewright.cli.main import main
from tilewright.engine import native_built

WITHOUT_SIMPY = """
import sys
sys.modules["simpy"] = None
from tilewright.cli.main import main
sys.exit(main(["bench", "engine", "--json"]))
"""


WITHOUT_A_CHECKOUT = """
import sys
sys.modules["tilewright.bench"] = None  # an installed wheel has none
from tilewright.cli.main import main
sys.exit(main(["bench", "engine"]))
"""


def test_an_installed_wheel_says_that_benchmarks_need_a_checkout() -> None:
    command = (sys.executable, "-c", WITHOUT_A_CHECKOUT)
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "an installed wheel, which has no benchmarks" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.timeout(120)
def test_the_engine_benchmark_proves_equal_results_and_gives_the_ratios(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["bench", "engine", "--rounds", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["identical"] is True
    assert set(document["ratios"]) == {
        "native_open_loop",
        "native_closed_loop",
        "native_finite_buffers",
        "reference_open_loop",
    }
    assert (document["ratios"]["native_open_loop"] is None) is not native_built()
    assert document["growth_64_to_1024"] > 0
    by_peer = {row["implementation"]: row for row in document["workloads"]}
    assert by_peer["simpy"]["events_per_hop"] <= 3.2


def test_without_its_peer_the_benchmark_names_the_extra_and_exits_2() -> None:
    command = (sys.executable, "-c", WITHOUT_SIMPY)
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    error = json.loads(run.stdout)["error"]
    assert error["type"] == "MissingExtraError"
    assert "'.[bench]'" in error["fix"]


@pytest.mark.parametrize("arguments", [("--seed", "-1"), ("--rounds", "0"), ("--rounds", "x")])
def test_a_wrong_option_is_wrong_input(arguments: tuple[str, ...]) -> None:
    assert main(["bench", "engine", *arguments]) == 2
