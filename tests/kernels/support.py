"""Which functions of the language tests hold against Triton: read from the kernels themselves.

A function counts if a kernel that passes here and in Triton's interpreter calls it. The tables of
``docs/language.md`` are made from this.
"""

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import triton.language  # type: ignore[import-untyped]

from tests.kernels.argument import Named
from tests.kernels.case import SOURCE, KernelCase
from tests.kernels.extra_case import EXTRAS
from tests.kernels.op_case import OPS
from tests.kernels.table import CASES
from tilewright import language
from tilewright.language.dtype import DTYPES
from tilewright.language.front import FUNCTION_TYPES
from tilewright.language.kernel import LAUNCH_OPTIONS
from tilewright.language.value import METHODS

__all__ = ("PAGE", "held_against_triton", "page_with_tables", "support_tables")

PUBLIC_NAMES: tuple[str, ...] = vars(language)["__all__"]
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "language.md"
BEGIN, END = "<!-- tables: made by tests -->", "<!-- end of tables -->"

Callers = dict[str, list[str]]


@cache
def _functions(file: Path) -> Mapping[str, ast.FunctionDef]:
    tree = ast.parse(file.read_text())
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _spoken(file: Path, kernel: str) -> set[str]:
    """Functions of the language that a kernel and its helpers call, methods included."""
    functions, found = _functions(file), set()
    waiting, seen = [kernel], {kernel}
    while waiting:
        for node in ast.walk(functions[waiting.pop()]):
            if isinstance(node, ast.Name) and node.id in functions and node.id not in seen:
                seen.add(node.id)
                waiting.append(node.id)
            found |= set(_names_in(node))
    return found


def _names_in(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.Attribute):
        return
    is_language = isinstance(node.value, ast.Name) and node.value.id == "tl"
    if is_language or node.attr in METHODS:
        yield node.attr


def _kernels_of(case: KernelCase) -> list[str]:
    named = [value.name for value in case.arguments().values() if isinstance(value, Named)]
    return [case.kernel, *named]


def held_against_triton() -> Callers:
    """By function: the cases that call it, run here and in Triton's interpreter."""
    callers: Callers = {}
    for op in OPS:
        for function in _spoken(SOURCE / "op.py", op.function):
            callers.setdefault(function, []).append(op.name)
    for extra in EXTRAS:
        for function in _spoken(SOURCE / "op.py", extra.kernel):
            callers.setdefault(function, []).append(extra.name)
    for case in CASES:
        if case.runs_in_triton:
            for kernel in _kernels_of(case):
                for function in _spoken(case.file, kernel):
                    callers.setdefault(function, []).append(case.name)
    return callers


def held_here() -> set[str]:
    """Functions that some test calls in a kernel here, whether Triton can run it or not."""
    found = {name for case in CASES for name in _spoken(case.file, case.kernel)}
    for folder in ("executor", "language", "kernels"):
        for file in sorted((ROOT / "tests" / folder).rglob("test_*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                found |= set(_names_in(node))
    return found


# -- tables ------------------------------------------------------------------------------------


def public_functions() -> dict[str, Callable[..., Any]]:
    """Functions of the language by name."""
    named = {name: getattr(language, name) for name in PUBLIC_NAMES}
    return {name: value for name, value in named.items() if isinstance(value, FUNCTION_TYPES)}


def _in_triton(name: str) -> bool:
    return hasattr(triton.language, name)


def _says(function: Callable[..., Any]) -> str:
    lines = (inspect.getdoc(function) or "").partition("\n\n")[0].split("\n")
    return " ".join(lines).replace("|", "\\|")


def _chapter(function: Callable[..., Any]) -> str:
    return function.__module__.rpartition(".")[2]


def _held_text(cases: list[str]) -> str:
    shown = ", ".join(sorted(set(cases), key=lambda name: (len(name), name))[:2])
    return f"{len(set(cases))}: {shown}" + (", ..." if len(set(cases)) > 2 else "")


def _triton_table() -> Iterator[str]:
    held, functions = held_against_triton(), public_functions()
    chapters: dict[str, list[str]] = {}
    for name in sorted(functions):
        if name in held and _in_triton(name):
            chapters.setdefault(_chapter(functions[name]), []).append(name)
    for chapter, names in sorted(chapters.items()):
        yield from ("", f"### {chapter.capitalize()}", "")
        yield from ("| function | says | held by |", "| --- | --- | --- |")
        for name in names:
            yield f"| `{name}` | {_says(functions[name])} | {_held_text(held[name])} |"


def _table(names: list[str]) -> Iterator[str]:
    functions, here = public_functions(), held_here()
    yield from ("| function | says | a test calls it |", "| --- | --- | --- |")
    for name in names:
        yield f"| `{name}` | {_says(functions[name])} | {'yes' if name in here else 'no'} |"


def _code(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


def support_tables() -> str:
    """The part of the page that tests make."""
    held, functions = held_against_triton(), public_functions()
    here_only = [name for name in functions if _in_triton(name) and name not in held]
    unknown = [name for name in functions if not _in_triton(name)]
    elementwise = [name for name in unknown if name in vars(language.math)["__all__"]]
    beyond = [name for name in unknown if name not in elementwise]
    missing = [name for name in triton.language.__all__ if name not in PUBLIC_NAMES]
    others = [name for name in PUBLIC_NAMES if name not in functions and name not in _dtype_names()]
    lines = [
        "## Held against Triton",
        *_triton_table(),
        "",
        "## Of Triton, held here alone",
        "",
        "Triton's interpreter has no comparable result for these: printed text, assembler, or a",
        "function that the installed Triton has lost.",
        "",
        *_table(sorted(here_only)),
        "",
        "## Under libdevice's names",
        "",
        "Also as `tl.extra.libdevice` and `tl.math`; held against NumPy in f64, since Triton's",
        "interpreter has no libdevice.",
        "",
        *_table(sorted(elementwise)),
        "",
        "## Beyond Triton",
        "",
        *_table(sorted(beyond)),
        "",
        "## Dtypes, methods, names",
        "",
        f"Dtypes: {_code(_dtype_names())}; `int4` is ours.",
        "",
        f"Methods of blocks: {_code(sorted(METHODS))}, `to`, `cast`, `T`.",
        "",
        f"Other names: {_code(sorted(others))}.",
        "",
        f"Options of a launch that say nothing here: {_code(sorted(LAUNCH_OPTIONS))}.",
        "",
        f"Names of `triton.language` that are not here: {_code(sorted(missing))}.",
    ]
    return "\n".join(lines)


def _dtype_names() -> list[str]:
    return [dtype.language_name for dtype in DTYPES]


def page_with_tables() -> str:
    """The page as it should be."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{support_tables()}\n\n{END}{after}"
