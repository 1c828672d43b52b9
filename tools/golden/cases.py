"""What results are held to: commands whose records and traces are taken, and random kernels."""

import ast
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.report.perfetto.read_trace import ReadSlice, read_trace
from tilewright.cli.main import main
from tools.golden.fields import FieldTable
from tools.golden.kernels import run_random_kernel

__all__ = ("Case", "Result", "cases", "in_a_folder")

Result = dict[str, Any]
Case = Callable[[], Result]

FLOWS_PAGE = Path(__file__).parents[2] / "docs" / "flows.md"
MACHINES = ("ahbm", "ahbm-small")
NUM_KERNELS = 200
SMALL_STEP = ("--machine", "ahbm-small", "--batch", "1", "--context", "512", "--phases", "1")


def cases(table: FieldTable) -> Mapping[str, Case]:
    """Return the cases by name, the long ones first; traces get their recorded names."""
    return {
        "demo": partial(_demo, table),
        "validate": partial(_command, "validate", "--json"),
        **_programs(table),
        **_flows(),
        **{f"kernel {seed}": partial(run_random_kernel, seed) for seed in range(NUM_KERNELS)},
    }


def _programs(table: FieldTable) -> dict[str, Case]:
    _, output, _ = _run("list", "--json")
    names = [program["name"] for program in json.loads(output)["programs"]]
    return {
        f"run {name} {machine}": partial(_program, table, name, machine)
        for machine in MACHINES
        for name in names
    }


def _flows() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name in re.findall(r"^\| `(\w+)`", FLOWS_PAGE.read_text("utf-8"), re.MULTILINE):
        flow = ("attention", "run", "--flow", name, "--json")
        found[f"step {name}"] = partial(_command, *flow, "--backend", "machine", *SMALL_STEP)
        found[f"flow {name}"] = partial(_command, *flow, "--context", "1024", "--steps", "2")
        for target in ("triton", "machine"):
            found[f"compile {name} {target}"] = partial(_kernels, name, target)
    return found


def _demo(table: FieldTable) -> Result:
    found = _command("demo", "--jobs", "1", "--json")
    return {**found, "trace": _trace(table, Path("tilewright-demo.pftrace"))}


def _program(table: FieldTable, name: str, machine: str) -> Result:
    options = ("--machine", machine, "--phases", "2", "--record", "record.json")
    status, _, errors = _run("run", name, *options, "--trace", "run.pftrace")
    record = Path("record.json")
    return {
        **(json.loads(record.read_bytes()) if record.exists() else {"errors": errors}),
        "exit_status": status,
        "trace": _trace(table, Path("run.pftrace")),
    }


def _command(*arguments: str) -> Result:
    status, output, errors = _run(*arguments)
    return {**(json.loads(output) if output else {"errors": errors}), "exit_status": status}


def _kernels(flow: str, target: str) -> Result:
    """Compile a flow; of its text only the syntax tree is kept, comments and layout are not."""
    found = _command("attention", "compile", flow, "--emit", target, "--json")
    if "text" in found:
        found["text"] = ast.dump(ast.parse(found["text"]), indent=1).splitlines()
    return found


def _run(*arguments: str) -> tuple[int, str, str]:
    """Run a command in this process and return exit status, output and errors."""
    output, errors = StringIO(), StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        status = main(list(arguments))
    return status, output.getvalue(), errors.getvalue()


def _trace(table: FieldTable, file: Path) -> Result | None:
    """Return a hash of each track of a trace; millions of slices would not fit a record."""
    if not file.exists():
        return None
    trace = read_trace(file.read_bytes())
    tracks = {
        table.text("/".join(track)): _hash(table.text(_line(each)) for each in slices)
        for track, slices in trace.slices.items()
    }
    values = {table.text("/".join(track)): _hash(map(str, v)) for track, v in trace.values.items()}
    return {"slices": tracks, "values": values}


def _line(each: ReadSlice) -> str:
    return f"{each.name} {each.start_ns} {each.end_ns} {sorted(each.arguments.items())}"


def _hash(lines: Iterable[str]) -> str:
    found = hashlib.sha256()
    for line in lines:
        found.update(line.encode())
    return found.hexdigest()[:16]


def in_a_folder(case: Case) -> Result:
    """Run a case in an empty folder, which is removed afterwards."""
    before = Path.cwd()
    with TemporaryDirectory(prefix="tilewright-golden-") as folder:
        os.chdir(folder)
        try:
            return case()
        finally:
            os.chdir(before)
