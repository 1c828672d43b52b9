"""The option ``--phases``, which all commands that measure short runs share."""

from typing import Annotated

import typer

from tilewright.analysis.phases import MAX_PHASES

PhasesOption = Annotated[
    int | None,
    typer.Option(
        "--phases",
        metavar="N",
        min=1,
        max=MAX_PHASES,
        help="Repeat with refresh at N phases. Default: until the mean is known to 2 %, at most"
        " 16; 1 if a run is longer than 20 refresh intervals.",
    ),
]
