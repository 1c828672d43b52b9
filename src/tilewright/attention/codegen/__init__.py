"""Graph to readable program bodies in plain Triton."""

from tilewright.attention.codegen.compile import compile_graph
from tilewright.attention.codegen.kernel_file import (
    Grid,
    Kernel,
    KernelFile,
    Merge,
    Scratch,
    ScratchAxis,
)
from tilewright.attention.codegen.tiling import Tiling

__all__ = (
    "Grid",
    "Kernel",
    "KernelFile",
    "Merge",
    "Scratch",
    "ScratchAxis",
    "Tiling",
    "compile_graph",
)
