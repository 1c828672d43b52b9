"""Unmodified ``@triton.jit`` kernels as kernels of ours.

The Python function behind a decorator gets new globals, in which the names of Triton's language are
ours; no module is patched, and Triton need not be installed. Objects of Triton are known by the
module and the name of their type.
"""

import builtins
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

from tilewright.errors import KernelError
from tilewright.language.dtype import dtype_of
from tilewright.language.kernel import Kernel, kernel_of_function
from tilewright.language.triton.rewrite import triton_code
from tilewright.language.triton.scalar import BUILTINS, FUNCTIONS, LANGUAGE

MARK = "tilewright_triton"  # on a function that stands for a jitted one

LANGUAGE_MODULES = ("triton.language", "triton.language.core", "triton.language.standard")


def is_triton_object(value: object) -> bool:
    """Whether Triton made it, a module of its own included."""
    name = value.__name__ if isinstance(value, ModuleType) else type(value).__module__
    return name.partition(".")[0] == "triton"


def adapt_kernel(source: Any, language: Any) -> Kernel:
    """The kernel behind a function or what Triton's decorators made of it; a Kernel is its own.

    ``language`` is the namespace that takes the place of ``triton.language``.
    """
    if isinstance(source, Kernel):
        return source
    rules: list[Callable[[dict[str, Any]], dict[str, Any]]] = []
    while is_triton_object(source):
        kind = type(source).__name__
        if kind == "Autotuner":
            rules.append(_configuration(source))
        elif kind == "Heuristics":
            rules.append(_heuristics(source))
        else:
            break
        source = source.fn
    function = source if isinstance(source, FunctionType) else getattr(source, "fn", None)
    if not isinstance(function, FunctionType):
        fix = "pass a function or what @triton.jit made of one"
        raise KernelError("launch", f"{source!r} as the kernel", "a kernel", fix)
    params = None if function is source else getattr(source, "params", None)
    constants = None
    if params is not None:
        constants = frozenset(param.name for param in params if param.is_constexpr)
    rebinder = _Rebinder(language)
    is_triton = is_triton_object(source) or getattr(source, MARK, False)
    adapted = (rebinder.triton_function if is_triton else rebinder.function)(function)
    kernel = kernel_of_function(adapted, language, constants, function.__name__)
    specialised = frozenset(  # in whose place Triton compiles the number 1, if that is given
        each.name
        for each in params or ()
        if is_triton and not (each.is_constexpr or each.do_not_specialize)
    )
    return replace(kernel, chosen=tuple(rules), is_triton=is_triton, specialised=specialised)


def as_triton(function: FunctionType) -> FunctionType:
    """Mark a function as ``@triton.jit`` does, where there is no Triton."""
    setattr(function, MARK, True)
    return function


def adapt_argument(value: Any, language: Any) -> Any:
    """What an argument of a launch means to a kernel of ours: a helper, a dtype, a constant."""
    if not is_triton_object(value):
        return value
    kind = type(value).__name__
    if kind in ("constexpr", "dtype"):
        return value.value if kind == "constexpr" else dtype_of(value)
    return adapt_kernel(value, language).function


def _configuration(tuner: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The first configuration: its constants. ``num_warps`` and the like mean nothing here."""
    first = tuner.configs[0] if tuner.configs else None
    if getattr(first, "pre_hook", None) is not None:
        fix = "run the hook before the launch, and drop it from the configuration"
        raise KernelError("autotune", "a pre_hook, which works on tensors", "constants alone", fix)
    chosen = {} if first is None else dict(first.kwargs)
    return lambda known: {name: value for name, value in chosen.items() if name not in known}


def _heuristics(decorated: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    values = decorated.values

    def rule(known: dict[str, Any]) -> dict[str, Any]:
        found = dict(known)
        for name, value in values.items():
            found[name] = value(found)
        return {name: found[name] for name in values}

    return rule


class _Rebinder:
    """Gives functions new globals and closures; each function once, so that recursion ends.

    In functions of Triton the language is Triton's, see ``triton.scalar``, and so is the text.
    """

    def __init__(self, language: Any, *, is_triton: bool = False) -> None:
        self._language = language
        self._functions: dict[FunctionType, FunctionType] = {}
        self._is_triton = is_triton
        self._triton = self if is_triton else None

    def triton_function(self, source: FunctionType) -> FunctionType:
        """A function that Triton compiles, whoever calls it."""
        if self._triton is None:
            self._triton = _Rebinder(_triton_language(self._language), is_triton=True)
        return self._triton.function(source)

    def function(self, source: FunctionType) -> FunctionType:
        if source in self._functions:
            return self._functions[source]
        code = triton_code(source) if self._is_triton else source.__code__
        names: dict[str, Any] = {"__builtins__": builtins}
        if self._is_triton:
            names.update({**BUILTINS, **FUNCTIONS})
        cells = source.__closure__
        new_cells = None if cells is None else tuple(CellType() for _ in cells)
        adapted = FunctionType(code, names, source.__name__, None, new_cells)
        adapted.__annotations__ = source.__annotations__
        self._functions[source] = adapted
        names["__name__"] = source.__globals__.get("__name__", source.__module__)
        for name in _global_names(code):
            if name in source.__globals__:
                names[name] = self.value(source.__globals__[name])
        for old, new in zip(cells or (), new_cells or (), strict=True):
            try:
                contents = old.cell_contents
            except ValueError:  # a name that is not bound yet, or no more
                continue
            new.cell_contents = self.value(contents)
        if source.__defaults__ is not None:
            adapted.__defaults__ = tuple(map(self.value, source.__defaults__))
        if source.__kwdefaults__ is not None:
            named = source.__kwdefaults__.items()
            adapted.__kwdefaults__ = {name: self.value(value) for name, value in named}
        return adapted

    def value(self, value: Any) -> Any:
        """What takes the place of a global in a kernel."""
        if isinstance(value, ModuleType):
            return self._module(value)
        if getattr(value, MARK, False):
            return self.triton_function(value)
        if isinstance(value, FunctionType):
            if value.__module__.partition(".")[0] == "triton":
                return self._named(value.__name__, value)
            return value
        if not is_triton_object(value):
            return value
        kind = type(value).__name__
        if kind == "dtype":
            return dtype_of(value)
        if kind == "constexpr":
            return value.value
        function = getattr(value, "fn", None)
        if isinstance(function, FunctionType):  # a nested @triton.jit, or one of Triton's own
            if function.__module__ in LANGUAGE_MODULES:
                return self._named(function.__name__, value)
            return self.triton_function(function)
        return self._named(getattr(value, "__name__", kind), value)

    def _module(self, module: ModuleType) -> Any:
        top, _, rest = module.__name__.partition(".")
        if top != "triton":
            uses_triton = any(map(is_triton_object, vars(module).values()))
            return _ModuleView(module, self) if uses_triton else module
        if not rest:
            tl = self._language  # and the few functions of its own
            return SimpleNamespace(language=tl, cdiv=tl.cdiv, next_power_of_2=tl.next_power_of_2)
        if rest == "language":
            return self._language
        return self._named(rest.rpartition(".")[2], module)

    def _named(self, name: str, value: Any) -> Any:
        found = getattr(self._language, name, None)
        if found is None:
            fix = "write it with functions of the support table"
            raise KernelError("kernel", f"{value!r}", "a function of the language", fix)
        return found


@cache
def _triton_language(language: Any) -> ModuleType:
    """The language as functions of Triton see it; a module, which Python looks into fastest."""
    seen = ModuleType(getattr(language, "__name__", "tl"))
    vars(seen).update({**vars(language), **LANGUAGE})
    return seen


class _ModuleView:
    """A module of the author's: helpers and names of Triton in it are replaced as in a kernel."""

    def __init__(self, module: ModuleType, rebinder: _Rebinder) -> None:
        self._module = module
        self._rebinder = rebinder

    def __getattr__(self, name: str) -> Any:
        return self._rebinder.value(getattr(self._module, name))


def _global_names(code: CodeType) -> Iterator[str]:
    """Names that a function and the functions inside it may look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)
