"""A new built-in program is one file: nothing else has to know of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.changed_package import copy_package, output_of

MAIN = """
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
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has the new file."""
    found = tmp_path_factory.mktemp("checkout")
    (copy_package(found, "programs") / "programs" / "builtin" / "scale.py").write_text(NEW_PROGRAM)
    return found


def _printed(directory: Path, *arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(output_of(directory, MAIN, *arguments, "--json"))
    return document


def test_a_new_file_is_listed_behind_the_others_with_its_parameters(directory: Path) -> None:
    listed = _printed(directory, "list")["programs"]
    assert listed[-1]["name"] == "scale"
    assert [each["name"] for each in listed[-1]["parameters"]] == ["elements", "factor", "pes"]


def test_a_new_program_runs_with_right_values_at_or_above_its_bound(directory: Path) -> None:
    changes = ("--param", "factor=2.5", "--machine", "ahbm-small", "--once")
    record = _printed(directory, "run", "scale", *changes)
    assert record["ok"] is True
    assert record["parameters"]["factor"] == 2.5
    assert record["bound_ps"] <= record["latency_ps"]
