"""The process that runs kernels under Triton's interpreter. Started, never imported.

Messages are pickles on standard input and output: (file, kernel, grid, arguments) in, (ok, result)
out, where the result is the arrays after the run or the text of the failure.
"""

import importlib.util
import os
import pickle
import sys
import traceback
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np
import torch
from triton.runtime.autotuner import Autotuner  # type: ignore[import-untyped]
from triton.tools.tensor_descriptor import TensorDescriptor  # type: ignore[import-untyped]

from tests.kernels.argument import Addresses, Described, Named

MODULES: dict[Path, ModuleType] = {}


def load(file: Path) -> ModuleType:
    if file not in MODULES:
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        MODULES[file] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(MODULES[file])
    return MODULES[file]


def tensor_of(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """The same memory; torch does not know NumPy's narrow dtypes, so bits change hands."""
    if array.dtype.name not in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return torch.from_numpy(array)
    bits = torch.from_numpy(array.view(f"uint{8 * array.itemsize}"))
    return bits.view(getattr(torch, array.dtype.name))


def run(file: Path, name: str, grid: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    module = load(file)
    tensors = {
        key: tensor_of(value) for key, value in arguments.items() if isinstance(value, np.ndarray)
    }
    passed = {key: converted(value, tensors, module) for key, value in arguments.items()}
    passed = {key: tensors.get(key, value) for key, value in passed.items()}
    launched = {key: value for key, value in passed.items() if not key.startswith("_")}
    kernel = getattr(module, name)
    if isinstance(kernel, Autotuner):  # nothing to measure here: the first configuration wins
        ranks = count()
        kernel.__dict__["do_bench"] = lambda *_, **__: [next(ranks)] * 3
    kernel[getattr(module, grid) if isinstance(grid, str) else grid](**launched)
    return {key: value for key, value in arguments.items() if isinstance(value, np.ndarray)}


def converted(value: Any, tensors: dict[str, torch.Tensor], module: ModuleType) -> Any:
    match value:
        case Named(name=name):
            return getattr(module, name)
        case Addresses(names=names):
            return torch.tensor([tensors[name].data_ptr() for name in names], dtype=torch.int64)
        case Described(name=name, block_shape=block_shape):
            return TensorDescriptor.from_tensor(tensors[name], list(block_shape))
    return value


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        try:
            answer: tuple[bool, Any] = (True, run(*request))
        except Exception:  # noqa: BLE001  # whatever a kernel raises is the answer
            answer = (False, traceback.format_exc())
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a kernel prints goes to standard error
    torch.set_num_threads(1)
    serve(sys.stdin.buffer, replies)
