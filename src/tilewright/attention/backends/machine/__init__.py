"""Generated kernels on a simulated machine: values and time of a decode step."""

from tilewright.attention.backends.machine.layout import (
    LayoutSpec,
    RowLayout,
    RowPlacement,
    plan_layout,
)
from tilewright.attention.backends.machine.load import LoadedKernels, load_kernels

__all__ = (
    "LayoutSpec",
    "LoadedKernels",
    "RowLayout",
    "RowPlacement",
    "load_kernels",
    "plan_layout",
)
