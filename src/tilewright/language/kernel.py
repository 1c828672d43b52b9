"""A kernel: a Python function, which of its parameters are constants, and how arguments bind."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import KernelError

LAUNCH_OPTIONS = frozenset(
    ("debug", "enable_fp_fusion", "launch_cooperative_grid", "maxnreg", "num_ctas", "num_stages",
     "num_warps", "warp_size")
)  # fmt: skip

LANGUAGE_PARAMETER = "tl"
UNNAMED = frozenset(
    (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    )
)


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
    given: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that no launch names: the language, for a parameter called ``tl``."""
    is_triton: bool = False
    specialised: frozenset[str] = frozenset()
    """Parameters whose argument 1 is a constant, as Triton compiles it."""

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
            where, fix = f"kernel {self.name!r}", "correct the launch"
            raise KernelError(where, str(error), expected, fix) from None
        bound.apply_defaults()
        return {**bound.arguments, **self.given}


def kernel_of_function(
    function: Callable[..., Any],
    language: Any,
    constants: frozenset[str] | None = None,
    name: str | None = None,
    language_parameter: str = LANGUAGE_PARAMETER,
) -> Kernel:
    """Make a kernel of a plain function; parameters annotated with ``constexpr`` are constants.

    The parameter ``language_parameter``, if there is one, is bound to ``language``.
    """
    called = name or function.__name__
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    _check_parameters(called, parameters)
    _check_runs(called, function)
    if constants is None:
        constants = frozenset(
            parameter.name for parameter in parameters if _is_constexpr(parameter.annotation)
        )
    takes_language = any(parameter.name == language_parameter for parameter in parameters)
    given = {language_parameter: language} if takes_language else {}
    if given:
        signature = inspect.Signature([each for each in parameters if each.name not in given])
    return Kernel(called, function, constants | given.keys(), (), signature, given)


def _check_parameters(name: str, parameters: list[inspect.Parameter]) -> None:
    for parameter in parameters:
        if parameter.kind in UNNAMED:
            found = f"the parameter {parameter}"
            fix = "give each argument a parameter of its own"
            raise KernelError(f"kernel {name!r}", found, "parameters that have names", fix)


def _check_runs(name: str, function: Callable[..., Any]) -> None:
    """Refuse a function whose call runs nothing of its body."""
    kinds = {"yield": inspect.isgeneratorfunction, "async": inspect.iscoroutinefunction}
    for word, is_kind in kinds.items():
        if is_kind(function) or inspect.isasyncgenfunction(function):
            fix = f"take {word} out: a kernel is a plain function, and waits by itself"
            found = f"a function with {word}, of which a call runs nothing"
            raise KernelError(f"kernel {name!r}", found, "a function that runs when called", fix)


def _is_constexpr(annotation: Any) -> bool:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return text.rpartition(".")[2].lower() == "constexpr"
