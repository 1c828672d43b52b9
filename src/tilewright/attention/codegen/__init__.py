"""Graph to readable program bodies in plain Triton."""

from tilewright.attention.codegen.compile import compile_graph
from tilewright.attention.codegen.compile_dense import compile_dense
from tilewright.attention.codegen.cut import Cut, Decision, Fusion, Selection
from tilewright.attention.codegen.kernel_cache import KernelCache, kernel_key
from tilewright.attention.codegen.kernel_file import (
    Grid,
    Kernel,
    KernelFile,
    Scratch,
    ScratchAxis,
)
from tilewright.attention.codegen.stage import Stage
from tilewright.attention.codegen.target import Deal, Merge, Target
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.codegen.traffic import Traffic

__all__ = (
    "Cut",
    "Deal",
    "Decision",
    "Fusion",
    "Grid",
    "Kernel",
    "KernelCache",
    "KernelFile",
    "Merge",
    "Scratch",
    "ScratchAxis",
    "Selection",
    "Stage",
    "Target",
    "Tiling",
    "Traffic",
    "compile_dense",
    "compile_graph",
    "kernel_key",
)
