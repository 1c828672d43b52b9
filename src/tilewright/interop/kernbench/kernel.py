"""Kernels of KernBench: the language is one of their arguments, all others are plain values."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import FunctionType
from typing import Any

from tilewright.errors import KernelError
from tilewright.interop.kernbench.language.context import LaunchedLanguage
from tilewright.language.kernel import LANGUAGE_PARAMETER, Kernel, kernel_of_function
from tilewright.language.triton.adaptor import is_triton_object


@dataclass(frozen=True, slots=True)
class _KernbenchKernel(Kernel):
    """A kernel whose keyword numbers may have names that are no parameters."""

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return every parameter's argument by name.

        Positional arguments fill the parameters in order, without the language's. A keyword
        whose name is a parameter binds by name. A number under any other name takes the next
        free position, since KernBench appends keyword numbers in order and drops their names.
        """
        free = iter([name for name in self._after(args) if name not in kwargs])
        named: dict[str, Any] = {}
        for name, value in kwargs.items():
            if name not in self.signature.parameters:
                name = self._position_of(name, value, next(free, None))
            named[name] = value
        if LANGUAGE_PARAMETER not in self.given and len(args) > len(self.signature.parameters):
            (last,) = self.given
            found = f"{len(args)} arguments for {self.name}{self.signature} and no parameter tl"
            expected = f"tl as a parameter: without one the last, {last}, stands for it"
            raise KernelError(f"kernel {self.name!r}", found, expected, "add tl as the last one")
        return Kernel.bind(self, args, named)

    def _after(self, args: tuple[Any, ...]) -> list[str]:
        """Return the parameters behind those that the positional arguments fill."""
        return list(self.signature.parameters)[len(args) :]

    def _position_of(self, name: str, value: Any, free: str | None) -> str:
        """Return the parameter for a keyword whose name is none; refuse what is no number."""
        is_number = isinstance(value, int | float)
        if is_number and free is not None:
            return free
        found = f"the keyword {name}={value!r}, which is no parameter"
        if is_number:
            found += ", and no free parameter for a number"
        near = get_close_matches(name, list(self.signature.parameters), n=1)
        fix = f"did you mean {near[0]}?" if near else "leave it out, or add a parameter"
        expected = f"arguments for {self.name}{self.signature}"
        raise KernelError(f"kernel {self.name!r}", found, expected, fix)


def kernel_of(function: Callable[..., Any], name: str | None = None) -> Kernel:
    """Return the kernel of a function that was written for KernBench.

    The parameter ``tl``, wherever it stands, receives the language; without one the last parameter
    does, whatever its name. Every other parameter gets its argument as it is given, so that
    addresses and sizes are Python's integers.

    >>> def kernel(a_ptr, K, tl, DTYPE="f16"): ...
    >>> bound = kernel_of(kernel).bind((4096, 64), {"DTYPE": "f32"})
    >>> bound["a_ptr"], bound["K"], bound["DTYPE"], type(bound["tl"]).__mro__[1].__name__
    (4096, 64, 'f32', 'TLContext')
    """
    called = name or str(getattr(function, "__name__", type(function).__name__))
    where = f"kernel {called!r}"
    if is_triton_object(function):
        fix = "launch it from a program that does not import kernbench, or write it with tl.load"
        raise KernelError(where, "a kernel of Triton", "a plain function with tl", fix)
    if not callable(function):
        fix = "pass the kernel's function behind its name"
        raise KernelError(where, repr(function), "a function with a parameter tl", fix)
    parameters = list(inspect.signature(function).parameters)
    if not parameters:
        fix = "add tl as the last parameter"
        raise KernelError(where, "a function without parameters", "one that takes tl", fix)
    receives = LANGUAGE_PARAMETER if LANGUAGE_PARAMETER in parameters else parameters[-1]
    plain = frozenset(parameters)
    kernel = kernel_of_function(function, LaunchedLanguage(), plain, called, receives)
    return _KernbenchKernel(
        called, _plain(function), kernel.constants, (), kernel.signature, kernel.given
    )


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of Python's that does what a method or a partial does."""
    return function if isinstance(function, FunctionType) else lambda **named: function(**named)
