"""A kernel: its function, its constants, and the arguments that launches bind to it."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.errors import KernelError
from tilewright.language.dtype import DType
from tilewright.language.executor import Executor
from tilewright.language.front import FUNCTION_TYPES
from tilewright.language.pointer import TensorDescriptor
from tilewright.language.scalar import Int1, strong_scalar

LAUNCH_OPTIONS = frozenset(
    ("debug", "enable_fp_fusion", "launch_cooperative_grid", "maxnreg", "num_ctas", "num_stages",
     "num_warps", "warp_size")
)  # fmt: skip

LANGUAGE_PARAMETER = "tl"
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


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
        says_nothing = LAUNCH_OPTIONS - self.signature.parameters.keys()
        kwargs = {name: value for name, value in kwargs.items() if name not in says_nothing}
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
    for parameter in parameters:
        if parameter.kind not in NAMED:
            found = f"the parameter {parameter}"
            fix = "give each argument a parameter of its own"
            raise KernelError(f"kernel {called!r}", found, "parameters that have names", fix)
    _check_runs(called, function)
    if constants is None:
        constants = frozenset(each.name for each in parameters if _is_constexpr(each.annotation))
    takes_language = language_parameter in signature.parameters
    given = {language_parameter: language} if takes_language else {}
    if given:
        signature = inspect.Signature([each for each in parameters if each.name not in given])
    return Kernel(called, function, constants | given.keys(), (), signature, given)


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


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array in virtual memory, as a kernel gets it: where it starts and what it holds."""

    address: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class DescriptorArgument:
    """A tensor descriptor that the host has made over an array."""

    array: ArrayArgument
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]


OWN = frozenset((ArrayArgument, DescriptorArgument, tuple))  # each program has its own


def checked_arguments(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """By name, before any program runs: numbers with their dtypes, constants as they are."""
    return {
        name: value if name in kernel.constants else _checked(kernel, name, value)
        for name, value in arguments.items()
    }


def _checked(kernel: Kernel, name: str, value: Any) -> Any:
    match value:
        case ArrayArgument() | DescriptorArgument() | DType():
            return value
        case _ if isinstance(value, FUNCTION_TYPES):
            return value
        case bool() if kernel.is_triton:
            return Int1(value)
        case None | bool() | str():
            return value
        case tuple():
            return tuple(_checked(kernel, f"{name}[{i}]", part) for i, part in enumerate(value))
        case np.bool_():
            return _checked(kernel, name, bool(value))
        case int() if value == 1 and name in kernel.specialised:
            return 1
        case int() | float() | np.integer() | np.floating():
            number = value.item() if isinstance(value, np.generic) else value
            try:
                return strong_scalar(number)
            except KernelError as error:
                where = f"kernel {kernel.name!r}"
                raise KernelError(where, f"{name} = {number}", error.expected, error.fix) from None
    found = f"{name} = {value!r} of type {type(value).__name__}"
    fix = "place an array first, pass a number, or mark the parameter as tl.constexpr"
    if isinstance(value, np.ndarray):
        found = f"{name}, an array of {value.dtype}{list(value.shape)} that is not on the device"
    raise KernelError(f"kernel {kernel.name!r}", found, "an argument that a kernel can take", fix)


def seen_by(program: Executor, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as one program has them: arrays are its own pointers."""
    seen = dict(arguments)
    for name, value in arguments.items():
        if type(value) in OWN:
            seen[name] = _seen(program, value)
    return seen


def _seen(program: Executor, value: Any) -> Any:
    if type(value) is ArrayArgument:  # mostly
        return program.pointers(value.address, value.dtype)
    match value:
        case DescriptorArgument(array=array):
            base = program.pointers(array.address, array.dtype)
            sizes = (value.shape, value.strides, value.block_shape)
            return TensorDescriptor(program, base, *sizes)
        case tuple():
            return tuple(_seen(program, part) for part in value)
    return value
