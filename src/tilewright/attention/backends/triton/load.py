"""Making kernels out of their text."""

import hashlib
import linecache
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tilewright.attention.codegen import KernelFile
from tilewright.errors import MissingExtraError


@dataclass(frozen=True, slots=True)
class LoadedKernels:
    """A kernel file with its jitted functions by name."""

    file: KernelFile
    functions: Mapping[str, Any]


def import_library(name: str) -> Any:
    """torch or triton, or an error that names the extra."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError("triton backend", name, "bench") from error


def load_kernels(file: KernelFile) -> LoadedKernels:
    """Run the text of a file. Triton reads the source of kernels, so it is kept for it."""
    import_library("triton")
    path = f"<kernels of {file.flow}, {hashlib.sha256(file.text.encode()).hexdigest()[:12]}>"
    lines = file.text.splitlines(keepends=True)
    linecache.cache[path] = (len(file.text), None, lines, path)
    names: dict[str, Any] = {"__name__": f"kernels_of_{file.flow}"}
    exec(compile(file.text, path, "exec"), names)  # text of our own generator
    kernels = [*file.step, *([file.completion] if file.completion else [])]
    return LoadedKernels(file, {kernel.name: names[kernel.name] for kernel in kernels})
