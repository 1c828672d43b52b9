"""What every replaceable block has: an implementation of the user's, and its parameters."""

from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from tilewright.machine.spec.quantity import Spec


def _check_parameter(value: object) -> object:
    # once for all members of the union: pydantic would complain for each of them
    if isinstance(value, int | str):
        return value
    raise PydanticCustomError("parameter", "expected a number, text, true or false")


Parameter = Annotated[int | str | bool, BeforeValidator(_check_parameter)]


class BlockSpec(Spec):
    """A part of the hardware that behaves; ``impl`` puts a user's class in its place."""

    impl: str | None = Field(
        None, description="package.module:Class of a user's block; null: the one in the package"
    )
    parameters: dict[str, Parameter] = Field(
        default_factory=dict, description="handed to the user's class as keyword arguments"
    )
