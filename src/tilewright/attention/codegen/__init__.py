"""Graph to readable program bodies in plain Triton."""

from tilewright.attention.codegen.cache import KernelCache, kernel_key
from tilewright.attention.codegen.compile import compile_dense, compile_graph
from tilewright.attention.codegen.plan.target import (
    Cut,
    Deal,
    Decision,
    Fusion,
    Merge,
    Selection,
    Target,
    Tiling,
)
from tilewright.attention.codegen.plan.traffic import Stage, Traffic
from tilewright.attention.codegen.source.file import Grid, Kernel, KernelFile, Scratch, ScratchAxis

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
