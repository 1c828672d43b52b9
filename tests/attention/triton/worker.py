"""The process that runs or compiles generated kernels. Started, never imported.

Messages are pickles: (what, kernel file, arguments) in, (ok, arrays or traceback) out.
"""

import os
import pickle
import sys
import traceback
from collections.abc import Callable
from functools import cache
from typing import Any, BinaryIO

import numpy as np
import torch
import triton  # type: ignore[import-untyped]
from triton.backends.compiler import GPUTarget  # type: ignore[import-untyped]
from triton.compiler import ASTSource  # type: ignore[import-untyped]

from tilewright.attention.backends.triton import StepSizes, complete, load_kernels, plan, run
from tilewright.attention.codegen import KernelFile

loaded = cache(load_kernels)


def tensors_of(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: tensor_of(value) for name, value in arguments.items()}


def tensor_of(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        bits = torch.from_numpy(value.view(f"uint{8 * value.itemsize}"))
        return bits.view(getattr(torch, value.dtype.name))
    return torch.from_numpy(value)


def completed(file: KernelFile, arguments: dict[str, Any]) -> dict[str, Any]:
    complete(loaded(file), tensors_of(arguments))  # tensors share the memory of the arrays
    return {name: value for name, value in arguments.items() if name.endswith("_pool")}


def stepped(file: KernelFile, sizes: StepSizes, arguments: dict[str, Any]) -> dict[str, Any]:
    result = run(loaded(file), plan(file, sizes), tensors_of(arguments))
    kept = {name: value for name, value in arguments.items() if name.endswith("_next")}
    sums = result.log_sum_exp
    return {
        **kept,  # tensors share the memory of the arrays
        "output": result.output.numpy(),
        "log_sum_exp": None if sums is None else sums.numpy(),
        "pages": [result.pages(row) for row in range(sizes.num_rows)],
    }


def compiled(file: KernelFile, kernel: str, signature: dict[str, str]) -> dict[str, Any]:
    """What the compiler makes of a kernel for a GPU that need not be there."""
    source = ASTSource(fn=loaded(file).functions[kernel], signature=signature)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    return {stage: len(text) for stage, text in made.asm.items()}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "compile": compiled,
    "complete": completed,
    "step": stepped,
}


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    while True:
        try:
            task, *arguments = pickle.load(requests)
        except EOFError:
            return
        try:
            answer: tuple[bool, Any] = (True, TASKS[task](*arguments))
        except Exception:  # noqa: BLE001  # whatever a kernel raises is the answer
            answer = (False, traceback.format_exc())
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    serve(sys.stdin.buffer, replies)
