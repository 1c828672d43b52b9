"""Generated kernels on a GPU: plan the launches of a step, then run them.

Needs torch and triton. Under ``TRITON_INTERPRET=1`` the same text runs on the CPU, which shows
values and nothing about speed.
"""

from tilewright.attention.backends.generated import LoadedKernels
from tilewright.attention.backends.triton.step import (
    MERGES,
    Launch,
    LaunchPlan,
    StepSizes,
    TritonStepResult,
    complete,
    load_kernels,
    plan,
    run,
)

__all__ = (
    "MERGES",
    "Launch",
    "LaunchPlan",
    "LoadedKernels",
    "StepSizes",
    "TritonStepResult",
    "complete",
    "load_kernels",
    "plan",
    "run",
)
