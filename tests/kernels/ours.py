"""Kernels on the simulated machine: the same call as for Triton's interpreter."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.kernels.argument import Addresses, Described, Named
from tests.kernels.case import Array
from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.memory import Sanitizer
from tilewright.runtime.workspace import LaunchResult, PlacedArray, Workspace

__all__ = ("run_here",)

NUM_PES = 8


@cache
def small_machine() -> Machine:
    return build_machine(parse_machine("ahbm-small"))


@cache
def module_of(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"kernels_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_here(
    file: Path,
    kernel: str,
    grid: Any,
    arguments: dict[str, Any],
    engine: EngineKind | Auto = AUTO,
    *,
    carries_data: bool = True,
    sanitizer: Sanitizer | None = None,
) -> tuple[dict[str, Array], LaunchResult]:
    """All arrays after the run, pages interleaved over the PEs that the programs are dealt to."""
    machine, module = small_machine(), module_of(file)
    workspace = Workspace(machine, engine, sanitizer=sanitizer)
    pes = list(machine.grid.pes())[:NUM_PES]
    placed = {
        name: workspace.place(value, pes)
        for name, value in arguments.items()
        if isinstance(value, np.ndarray)
    }

    def passed(value: Any) -> PlacedArray | Any:
        match value:
            case Named(name=name):
                return getattr(module, name)
            case Addresses(names=names):
                table = np.array([placed[name].address for name in names], np.int64)
                return workspace.place(table, pes)
            case Described(name=name, block_shape=block_shape):
                return workspace.describe(placed[name], tuple(block_shape))
        return value

    call: dict[str, Any] = {
        name: placed[name] if name in placed else passed(value)
        for name, value in arguments.items()
        if not name.startswith("_")
    }
    extents = getattr(module, grid) if isinstance(grid, str) else grid
    result = workspace.launch(
        getattr(module, kernel), grid=extents, pes=pes, carries_data=carries_data, **call
    )
    return {name: workspace.read(array) for name, array in placed.items()}, result
