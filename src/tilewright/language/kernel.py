"""A kernel: a Python function, which of its parameters are constants, and how arguments bind."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import KernelError

__all__ = ("Constexpr", "Kernel", "kernel_of_function")


LAUNCH_OPTIONS = frozenset(
    ("debug", "enable_fp_fusion", "launch_cooperative_grid", "maxnreg", "num_ctas", "num_stages",
     "num_warps", "warp_size")
)  # fmt: skip


class Constexpr:
    """``tl.constexpr``: marks a parameter whose argument is a constant; called, it is the constant.

    >>> Constexpr(64)
    64
    """

    def __new__(cls, value: Any) -> Any:
        return getattr(value, "value", value)


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a launch needs to know of a kernel."""

    name: str
    function: Callable[..., Any]
    constants: frozenset[str]
    chosen: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = ()
    """Rules that add constants, in order: configurations and heuristics of decorators."""
    signature: inspect.Signature = field(default_factory=inspect.Signature)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Every parameter's argument by name. How a compiler would launch it says nothing here."""
        kwargs = {
            name: value
            for name, value in kwargs.items()
            if name in self.signature.parameters or name not in LAUNCH_OPTIONS
        }
        added: dict[str, Any] = {}
        try:
            for rule in self.chosen:
                known = dict(self.signature.bind_partial(*args, **kwargs).arguments)
                added.update(rule({**known, **added}))
            bound = self.signature.bind(*args, **{**added, **kwargs})
        except TypeError as error:
            expected = f"arguments for {self.name}{self.signature}"
            raise KernelError(self.name, str(error), expected, "correct the launch") from None
        bound.apply_defaults()
        return dict(bound.arguments)


def kernel_of_function(
    function: Callable[..., Any], constants: frozenset[str] | None = None, name: str | None = None
) -> Kernel:
    """Of a plain function; parameters annotated with ``constexpr`` are constants."""
    signature = inspect.signature(function)
    if constants is None:
        constants = frozenset(
            parameter.name
            for parameter in signature.parameters.values()
            if _is_constexpr(parameter.annotation)
        )
    return Kernel(name or function.__name__, function, constants, (), signature)


def _is_constexpr(annotation: Any) -> bool:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return text.rpartition(".")[2].lower() == "constexpr"
