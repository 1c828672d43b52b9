"""The option that says which blocks' state the Saves of a flow write."""

from typing import Annotated

import typer

from tilewright.attention.planner import StateAdvance

StateAdvanceOption = Annotated[
    StateAdvance,
    typer.Option(
        help="Which blocks a Save writes. vortex: in rows that select, all but the reserved last"
        " ones. every_block: in all rows, every complete one."
    ),
]
