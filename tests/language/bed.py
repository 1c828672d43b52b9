"""A small device for kernels of tests: arrays in, arrays and times out."""

from functools import cache
from typing import Any

import numpy as np

from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.runtime.workspace import LaunchResult, PlacedArray, Workspace

__all__ = ("Array", "Bed")

Array = np.ndarray[Any, Any]


@cache
def _machine(overrides: tuple[str, ...]) -> Machine:
    return build_machine(parse_machine("ahbm-small", list(overrides)))


class Bed:
    """A workspace on the first PEs of a small machine."""

    def __init__(self, *overrides: str, num_pes: int = 1, engine: EngineKind | Auto = AUTO) -> None:
        machine = _machine(overrides)
        self.workspace = Workspace(machine, engine)
        self.pes = list(machine.grid.pes())[:num_pes]

    def place(self, values: Array) -> PlacedArray:
        return self.workspace.place(values, self.pes)

    def read(self, array: PlacedArray) -> Array:
        return self.workspace.read(array)

    def launch(self, kernel: Any, *args: Any, grid: Any = (1,), **kwargs: Any) -> LaunchResult:
        return self.workspace.launch(kernel, *args, grid=grid, pes=self.pes, **kwargs)
