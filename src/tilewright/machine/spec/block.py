"""What every replaceable block has: an implementation of the user's, and its parameters."""

from pydantic import Field

from tilewright.machine.spec.quantity import Spec

__all__ = ("BlockSpec",)


class BlockSpec(Spec):
    """A part of the hardware that behaves; ``impl`` puts a user's class in its place."""

    impl: str | None = Field(
        None, description="package.module:Class of a user's block; null: the one in the package"
    )
    parameters: dict[str, int | str | bool] = Field(
        default_factory=dict, description="handed to the user's class as keyword arguments"
    )
