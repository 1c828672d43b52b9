"""Generated kernels on a simulated machine: values and time of a decode step."""

from tilewright.attention.backends.machine.choose_placement import (
    PlacementCost,
    choose_placement,
    placement_costs,
)
from tilewright.attention.backends.machine.compiled import MERGES, kernels_for, target_of
from tilewright.attention.backends.machine.layout import (
    LayoutSpec,
    RowLayout,
    RowPlacement,
    plan_layout,
)
from tilewright.attention.backends.machine.load import LoadedKernels, load_kernels
from tilewright.attention.backends.machine.memory import (
    DecodeMemory,
    PageOrder,
    StepValues,
    block_bytes,
    deploy_rows,
    layout_of,
    pooled,
    prompt_windows,
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
    PreparedStep,
    StageLaunch,
    StepResult,
    prepare_step,
)
from tilewright.attention.backends.machine.table_copies import check_table_copies
from tilewright.attention.backends.machine.tuner import Tuner, TuneSpec, tiling_of

__all__ = (
    "MERGES",
    "DecodeMemory",
    "LayoutSpec",
    "LoadedKernels",
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
    "StepResult",
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
