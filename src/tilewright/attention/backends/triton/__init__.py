"""Generated kernels on a GPU: plan the launches of a step, then run them.

Needs torch and triton. Under ``TRITON_INTERPRET=1`` the same text runs on the CPU, which shows
values and nothing about speed.
"""

from tilewright.attention.backends.triton.launch import (
    MERGES,
    Launch,
    LaunchPlan,
    StepSizes,
    plan,
)
from tilewright.attention.backends.triton.load import LoadedKernels, load_kernels
from tilewright.attention.backends.triton.run import StepResult, complete, run

__all__ = (
    "MERGES",
    "Launch",
    "LaunchPlan",
    "LoadedKernels",
    "StepResult",
    "StepSizes",
    "complete",
    "load_kernels",
    "plan",
    "run",
)
