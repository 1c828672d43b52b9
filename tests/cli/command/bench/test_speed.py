"""``tilewright bench engine``: its document, and what it says without its peer."""

import json
import subprocess
import sys
from io import StringIO

import pytest
from rich.console import Console

from tilewright.cli.command.bench.speed import speed_table
from tilewright.cli.main import main
from tilewright.engine import native_built
from tilewright.records import EngineWorkloadRow

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


WIDTH = 80


def row(workload: str, implementation: str, hops_per_s: float) -> EngineWorkloadRow:
    return EngineWorkloadRow(
        workload=workload,
        implementation=implementation,
        seconds=0.5,
        hops=1_000_000,
        hops_per_s=hops_per_s,
        events_per_hop=145.24,
        simulated_ps=258_403,
        digest="0123456789abcdef" * 4,
    )


@pytest.mark.parametrize("slowest", ["simpy", "simpy, flits"])
def test_wide_numbers_fit_into_80_columns_uncut(slowest: str) -> None:
    rows = [
        row(workload, implementation, rate)
        for workload in ("open loop", "closed loop", "finite buffers")
        for implementation, rate in ((slowest, 99_999.9), ("native", 199_999_999.0))
    ]
    text = StringIO()
    Console(file=text, width=WIDTH).print(speed_table(rows))
    assert "\N{HORIZONTAL ELLIPSIS}" not in text.getvalue()
    assert "finite buffers" in text.getvalue()
    assert "2,000.0x" in text.getvalue()
    assert max(len(line) for line in text.getvalue().splitlines()) <= WIDTH
