"""The base of every JSON document that tilewright writes, and the field types they share."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat

JsonScalar = str | int | float | bool | None
"""What a command-line argument may be in a record."""

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
PageNumber = Annotated[int, Field(ge=0, lt=2**31)]
Seconds = NonNegativeFloat
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
StateAdvanceName = Literal["vortex", "every_block"]


class Document(BaseModel):
    """Frozen and strict: unknown keys, converted types, NaN and infinity are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
