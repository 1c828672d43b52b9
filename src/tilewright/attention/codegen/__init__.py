"""Graph to readable program bodies in plain Triton."""

from tilewright.attention.codegen.compile import compile_graph
from tilewright.attention.codegen.compile_dense import compile_dense
from tilewright.attention.codegen.cut import Cut, Decision, Fusion
from tilewright.attention.codegen.kernel_file import (
    Grid,
    Kernel,
    KernelFile,
    Scratch,
    ScratchAxis,
    Stage,
)
from tilewright.attention.codegen.target import Deal, Merge, Target
from tilewright.attention.codegen.tiling import Tiling

__all__ = (
    "Cut",
    "Deal",
    "Decision",
    "Fusion",
    "Grid",
    "Kernel",
    "KernelFile",
    "Merge",
    "Scratch",
    "ScratchAxis",
    "Stage",
    "Target",
    "Tiling",
    "compile_dense",
    "compile_graph",
)
