"""Generated kernels on a simulated machine: values and time of a decode step."""

from tilewright.attention.backends.generated import LoadedKernels, pooled
from tilewright.attention.backends.machine.compiled import (
    MERGES,
    kernels_for,
    load_kernels,
    target_of,
)
from tilewright.attention.backends.machine.layout import (
    LayoutSpec,
    RowLayout,
    RowPlacement,
    check_table_copies,
    plan_layout,
)
from tilewright.attention.backends.machine.memory import (
    DecodeMemory,
    PageOrder,
    StepValues,
    block_bytes,
    deploy_rows,
    layout_of,
)
from tilewright.attention.backends.machine.selection import (
    Recent,
    Recorded,
    SelectionModel,
    Uniform,
    model_pages,
    planned_counts,
)
from tilewright.attention.backends.machine.stage_book import StageBook
from tilewright.attention.backends.machine.step import (
    MachineStepResult,
    PreparedStep,
    StageLaunch,
    prepare_step,
)
from tilewright.attention.backends.machine.tuner import (
    PlacementCost,
    Tuner,
    TuneSpec,
    choose_placement,
    placement_costs,
    tiling_of,
)
from tilewright.attention.ops.leaf import prompt_windows

__all__ = (
    "MERGES",
    "DecodeMemory",
    "LayoutSpec",
    "LoadedKernels",
    "MachineStepResult",
    "PageOrder",
    "PlacementCost",
    "PreparedStep",
    "Recent",
    "Recorded",
    "RowLayout",
    "RowPlacement",
    "SelectionModel",
    "StageBook",
    "StageLaunch",
    "StepValues",
    "TuneSpec",
    "Tuner",
    "Uniform",
    "block_bytes",
    "check_table_copies",
    "choose_placement",
    "deploy_rows",
    "kernels_for",
    "layout_of",
    "load_kernels",
    "model_pages",
    "placement_costs",
    "plan_layout",
    "planned_counts",
    "pooled",
    "prepare_step",
    "prompt_windows",
    "target_of",
    "tiling_of",
)
