"""Kernels out of their text, with the language of the simulator in the place of Triton's."""

import ast
import hashlib
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tilewright import language
from tilewright.attention.codegen import KernelFile
from tilewright.language.triton.adaptor import as_triton


@dataclass(frozen=True, slots=True)
class LoadedKernels:
    """A kernel file with its functions by name, and the path that errors and traces show."""

    file: KernelFile
    functions: Mapping[str, Callable[..., Any]]
    path: str


def load_kernels(file: KernelFile) -> LoadedKernels:
    """Run the text of a file without triton: its imports are left out, and ``jit`` marks functions.

    So they mean what they mean under Triton: a launch rewrites them.
    Lines stay where they are, so that a breakdown by lines names those of the text.
    """
    path = f"<kernels of {file.flow}, {hashlib.sha256(file.text.encode()).hexdigest()[:12]}>"
    lines = file.text.splitlines(keepends=True)
    linecache.cache[path] = (len(file.text), None, lines, path)
    tree = ast.parse(file.text, path)
    tree.body = [node for node in tree.body if not isinstance(node, ast.Import)]
    names: dict[str, Any] = {
        "__name__": f"kernels_of_{file.flow}",
        "triton": SimpleNamespace(jit=as_triton),
        "tl": language,
    }
    exec(compile(tree, path, "exec"), names)  # text of our own generator
    kernels = [*file.step, *([file.completion] if file.completion else [])]
    return LoadedKernels(file, {kernel.name: names[kernel.name] for kernel in kernels}, path)
