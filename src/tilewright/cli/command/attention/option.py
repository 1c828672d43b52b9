"""Options of commands about flows, and what they mean together."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from tilewright.attention.backends.machine import RowPlacement
from tilewright.attention.graph import DType
from tilewright.attention.planner import StateAdvance
from tilewright.cli.option import machine_option
from tilewright.cli.startup import announced_engine, machine_of
from tilewright.errors import UsageError
from tilewright.studies.latency import LatencySpec, NamedMachine, check_names


class MachineDType(StrEnum):
    """Element types that keys, values and summaries may have on a machine."""

    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT8_E4M3 = "float8_e4m3"
    FLOAT8_E5M2 = "float8_e5m2"


StateAdvanceOption = Annotated[
    StateAdvance,
    typer.Option(
        help="Which blocks a Save writes. vortex: in rows that select, all but the reserved last"
        " ones. every_block: in all rows, every complete one."
    ),
]
HeadDimOption = Annotated[
    int | None,
    typer.Option(min=1, help="Width of a key: 128, or 576 for the latents of MLA flows."),
]
GroupOption = Annotated[
    int | None,
    typer.Option(min=1, help="Query heads that share a KV head: 4, or 16 for MLA flows."),
]
MachinesOption = Annotated[
    list[str] | None, machine_option("Simulate the time on it; may be repeated.", "--machine")
]
PlacementOption = Annotated[
    RowPlacement | None,
    typer.Option(help="How the pages of a row lie on PEs: head, unless told otherwise."),
]
DTypeOption = Annotated[
    MachineDType | None,
    typer.Option("--dtype", help="Of keys and values on the machine: float16."),
]


def latency_spec(
    machines: Sequence[str] | None,
    overrides: Sequence[str] | None,
    placement: RowPlacement | None,
    dtype: MachineDType | None,
    batch: int | None = None,
) -> LatencySpec | None:
    """Return where to simulate; None without a machine, and options that need one are refused."""
    if not machines:
        options = {"--set": overrides, "--placement": placement, "--dtype": dtype, "--batch": batch}
        for option, value in options.items():
            if value:
                expected, fix = "a machine that it is of", "add --machine ahbm"
                raise UsageError(option, "no --machine", expected, fix)
        return None
    changes = tuple(overrides or ())
    named = tuple(NamedMachine(machine_of(source, changes), source, changes) for source in machines)
    check_names(named)
    announced_engine()
    return LatencySpec(
        machines=named,
        placement=RowPlacement.HEAD if placement is None else placement,
        batch=1 if batch is None else batch,
        dtype=DType.FLOAT16 if dtype is None else DType(dtype.value),
    )
