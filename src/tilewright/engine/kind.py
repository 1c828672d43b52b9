"""Which engine runs: the closed choice, and the wish to leave it open."""

from enum import Enum


class EngineKind(Enum):
    """Two engines, one specification."""

    REFERENCE = "reference"
    NATIVE = "native"


class Auto(Enum):
    """Not an EngineKind, so that nothing below the choice can ever see it."""

    AUTO = "auto"


AUTO = Auto.AUTO
