"""A new built-in program is one file: nothing else has to know of it."""

import json
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest

import tilewright

SOURCE = Path(tilewright.__file__).parent
COMMAND = """
import sys
# an editable installation finds its own checkout before the one in the current folder
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in type(each).__module__]
from tilewright.cli.main import main
sys.exit(main())
"""
NEW_PROGRAM = '''"""A vector times a number."""

from typing import Annotated, Any

from tilewright import language as tl
from tilewright.host import LocalShard, LocalSize, RuntimeContext
from tilewright.programs.bound import Work
from tilewright.programs.contract import measured, row_error, tolerance_of
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.parameter import ProgramFit, fit_shares
from tilewright.programs.inputs import Draw, Pes, deploy, reserve, team_of


def scale_kernel(x_ptr: Any, out_ptr: Any, size: int, factor: float) -> None:
    tl.store(out_ptr, tl.load(x_ptr, shape=(size,)) * factor)


def _run(
    torch: RuntimeContext,
    elements: Annotated[int, "of the vector, split over the PEs"] = 4096,
    factor: Annotated[float, "that each element is multiplied by"] = 3.0,
    pes: Pes = 0,
) -> BenchOutcome:
    team, values = team_of(torch, pes=pes), Draw(torch).normal((elements,), "f32")
    x = deploy(torch, "x", values, team.split(0))
    out = reserve(torch, "out", values.shape, "f32", team.split(0))
    arguments = (*map(LocalShard, (x, out)), LocalSize(x, 0), factor)
    return measured(
        torch,
        torch.launch(scale_kernel, *arguments).report,
        Work(
            num_pes=team.num_pes,
            read_bytes=values.nbytes,
            written_bytes=values.nbytes,
            elements={"mul": elements},
        ),
        lambda: row_error(out.numpy(timed=False), factor * values),
        tolerance=tolerance_of("f32"),
    )


PROGRAMS = (
    BenchProgram(
        "scale", "a vector times a number", _run, fit=ProgramFit(counts=fit_shares("elements"))
    ),
)
'''


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the new file, and links to all that stays as it is."""
    root = tmp_path_factory.mktemp("checkout")
    package = root / "tilewright"
    package.mkdir()
    for item in SOURCE.iterdir():
        if item.name not in ("programs", "__pycache__"):
            (package / item.name).symlink_to(item)
    copytree(SOURCE / "programs", package / "programs", ignore=ignore_patterns("__pycache__"))
    (package / "programs" / "builtin" / "scale.py").write_text(NEW_PROGRAM)
    return root


def _printed(checkout: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-c", COMMAND, *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=checkout)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_a_new_file_is_listed_behind_the_others_with_its_parameters(checkout: Path) -> None:
    listed = _printed(checkout, "list")["programs"]
    assert listed[-1]["name"] == "scale"
    assert [each["name"] for each in listed[-1]["parameters"]] == ["elements", "factor", "pes"]


def test_a_new_program_runs_with_right_values_at_or_above_its_bound(checkout: Path) -> None:
    changes = ("--param", "factor=2.5", "--machine", "ahbm-small", "--once")
    record = _printed(checkout, "run", "scale", *changes)
    assert record["ok"] is True
    assert record["parameters"]["factor"] == 2.5
    assert record["bound_ps"] <= record["latency_ps"]
