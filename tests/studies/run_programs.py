"""Small host programs for tests of ``run``, and how to run them."""

from pathlib import Path
from typing import Any

from tilewright.engine import AUTO, EngineKind, native_built, resolve_engine
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.records import RunRecord
from tilewright.studies.run.command import RunWatch, run_program
from tilewright.studies.run.execute import RunRequest
from tilewright.studies.run.source import find_source

__all__ = ("MACHINE", "SCALE", "request_of", "run_file", "written")

MACHINE: Machine = build_machine(parse_machine("ahbm-small"))

SCALE = """
from tilewright import language as tl
from tilewright.host import DPPolicy, LocalShard

ROWS = DPPolicy(sip="row_wise", cube="row_wise", pe="row_wise")


def scale(x, n: int):
    for step in range(4):
        places = step * (n // 4) + tl.arange(0, n // 4)
        tl.store(x + places, tl.load(x + places) * 2.0)


def run(torch, n: int = 4096, times: int = 2):
    x = torch.zeros((16, n), dtype="f32", dp=ROWS, name="x", timed=False)
    for _ in range(times):
        torch.launch(scale, LocalShard(x), n)
"""


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def request_of(file: Path, **parameters: Any) -> RunRequest:
    source = find_source(str(file))
    values = {each.name: each.default for each in source.parameters} | parameters
    kind: EngineKind = resolve_engine(AUTO, native_built=native_built())
    return RunRequest(source, values, MACHINE, "ahbm-small", engine=kind)


def run_file(file: Path, watch: RunWatch | None = None, **parameters: Any) -> RunRecord:
    return run_program(request_of(file, **parameters), watch or RunWatch())
