"""Which program files are written for KernBench: those that import it."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from tilewright.errors import BenchError
from tilewright.records import read_file

PACKAGE = "kernbench"


def imports_kernbench(file: Path, content: bytes) -> bool:
    """Tell whether a file imports ``kernbench`` anywhere, itself or through files beside it.

    A file that is no Python imports nothing.
    """
    return _imports(file, content, file.parent, seen=set())


def _imports(file: Path, content: bytes, folder: Path, seen: set[Path]) -> bool:
    seen.add(file)
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: too deep
        return False
    found = list(_imported_modules(tree, file, folder))
    if folder / PACKAGE in [*found, *(parent for module in found for parent in module.parents)]:
        return True
    return any(
        _imports(each, read_file(each, "a Python file", BenchError), folder, seen)
        for module in found
        for each in _files_of(module, folder)
        if each not in seen and os.path.isfile(each)
    )


def _imported_modules(tree: ast.AST, file: Path, folder: Path) -> Iterator[Path]:
    """Yield where imported modules would lie, without suffix, were all of them in the folder.

    A name that is imported from a module may be a module too.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (folder.joinpath(*alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = _start_of(node, file, folder)
            if start is not None:
                module = start.joinpath(*(node.module or "").split("."))
                yield from (module, *(module / alias.name for alias in node.names))


def _start_of(node: ast.ImportFrom, file: Path, folder: Path) -> Path | None:
    """Return the folder that an import counts from; None for one that leaves its packages."""
    if not node.level:
        return folder
    packages = [parent for parent in file.parents if folder in parent.parents]
    return packages[node.level - 1] if node.level <= len(packages) else None


def _files_of(module: Path, folder: Path) -> list[Path]:
    """Return the files that an import of a module runs, of those below the folder."""
    packages = [each for each in (module, *module.parents) if each.is_relative_to(folder)]
    return [module.parent / f"{module.name}.py", *(each / "__init__.py" for each in packages)]
