"""Scalars of Triton kernels beside Triton's own compiler: TR1 and on.

A case is the text of a kernel, run here and evaluated from the IR that Triton's front end makes of
it. Each runs on blocks of several dtypes, and its result is stored where every value fits.
"""

import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np

from tilewright.engine import EngineKind
from tilewright.language.dtype import dtype_of
from tilewright.runtime.workspace import Workspace
from tilewright.validation.engine_run import machine_named
from tilewright.validation.finding import Finding, Row, exact
from tilewright.validation.triton.ttir import evaluate, ir_text

NUM_ELEMENTS = 8
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32")
ALL = INTEGERS + FLOATS
NARROW = ("int8", "uint8", "int16", "int32")
SIGNED = ("int8", "int16", "int32", "int64")

_HEADER = """\
import triton
import triton.language as tl


@triton.jit
def twice(value):
    return value + value


@triton.jit
def chosen(flag):
    if flag:
        return 1
    return 2


@triton.jit
def half():
    return 0.5


@triton.jit
def kernel(x_ptr, out_ptr, n, f, N: tl.constexpr, C: tl.constexpr):
    places = tl.arange(0, N)
    x = tl.load(x_ptr + places)
"""


@dataclass(frozen=True, slots=True)
class ScalarProgram:
    """Lines of a kernel that make ``r`` out of a block ``x`` and scalars ``n`` and ``f``."""

    lines: tuple[str, ...]
    dtypes: tuple[str, ...] = INTEGERS
    n: int = 5
    f: float = 0.3

    @property
    def text(self) -> str:
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"{_HEADER}{body}    tl.store(out_ptr + places, r)\n"


def _program(text: str, dtypes: tuple[str, ...] = INTEGERS, **numbers: Any) -> ScalarProgram:
    return ScalarProgram(tuple(text.split("; ")), dtypes, **numbers)


PROGRAMS = {
    "a sum of a number that a variable holds": _program("t = 0; r = t + x", ALL),
    "a float that a variable holds": _program("t = 0.25; r = x * t", ALL),
    "a literal beside a block": _program("r = x + 100"),
    "a float literal beside a block": _program("r = x * 0.1 + 1.5", ALL),
    "a variable beside a block": _program("k = 100; r = x + k"),
    "a shift by a variable": _program("k = 4; r = x << k"),
    "a shift by a literal": _program("r = (x << 4) >> 2"),
    "a sum in a loop, from 0": _program("t = 0; for i in range(40):;     t += tl.load(x_ptr + 7)"
                                        "; r = t", ("int8", "int16", "int32")),
    "a sum in a loop, from 0.0": _program("t = 0.0; for i in range(40):"
                                          ";     t += tl.load(x_ptr + 7) * 300; r = t", FLOATS),
    "an index of a loop beside a block": _program("r = x + x.to(tl.int32)"
                                                  "; for i in range(3, 9):;     r += x * i"),
    "an index divided": _program("t = 0; for i in range(6):"
                                 ";     t = t * 7 + (i - 3) // 2 + (i - 3) % 2; r = t + x"),
    "an index that goes down": _program("t = 0; for i in range(9, -4, -3):;     t = t * 5 + i"
                                        "; r = t + x"),
    "an index of tl.range": _program("t = 0; for i in tl.range(-5, 6, 2):"
                                     ";     t = t * 3 + i // 2; r = t + x"),
    "an index of tl.static_range": _program("r = x; for i in tl.static_range(2, 5):"
                                            ";     r = r + i // 2"),
    "a variable divided": _program("a = -7; r = x * 0 + (a // 2) * 10 + a % 4", SIGNED),
    "an argument divided": _program("r = x * 0 + (n - 12) // 4 + (n - 12) % 4 * 16", SIGNED),
    "constants divided": _program("r = x * 0 + (C - 12) // 5 + (C - 12) % 5", SIGNED),
    "a block divided": _program("a = 3; r = (x - 4) // a * 10 + (x - 4) % a", SIGNED),
    "an unsigned word": _program("h = 0x9747b28c; r = (h ^ x) >> 13", ("int32", "uint8", "int16")),
    "unsigned words that wrap": _program("h = 0x9747b28c; h = h * 5 + 0x80000001; h ^= h >> 16"
                                         "; r = h + x", ("int32", "uint8")),
    "a float that float32 has not": _program("t = 1e300; r = x * t * 1e-300", FLOATS),
    "an argument times a literal": _program("r = x * (n * 0.1)", FLOATS),
    "a literal over an argument": _program("r = x * (1.0 / n)", FLOATS),
    "integers divided to a float": _program("a = 16777217; r = x * 0 + a / 3", FLOATS),
    "a float argument": _program("r = x * f - f * 0.1", ALL),
    "a float compared with a literal": _program("t = 0.1; r = x * (t == 0.1)", ALL),
    "sums of comparisons": _program("r = x + ((n > 3) + (n > 4))"),
    "a truth that a variable holds": _program("t = n > 3; r = x + t + t"),
    "truths of blocks": _program("r = ((x > 1) and (x < 5)).to(tl.int32) * 2"
                                 " + ((x < 2) or (x > 6)).to(tl.int32)", ALL),
    "not of a block": _program("m = not (x > 2); r = x * m", ALL),
    "a chain of comparisons": _program("r = x * (1 <= x < 6)", ALL),
    "a constant and a block": _program("r = x * ((C > 3) and (x > 2))", ALL),
    "a choice by an argument": _program("r = x + (100 if n > 3 else 50)"),
    "a choice by a constant": _program("r = x + (100 if C > 3 else 50)"),
    "a declared constant": _program("k: tl.constexpr = 100; r = x + k"),
    "an annotated variable": _program("k: tl.int32 = 100; r = x + k"),
    "two variables at once": _program("a, b = 100, 2; a, b = b, a; r = x * a + b"),
    "an assignment in an expression": _program("r = x + (k := 100) + k"),
    "the least of two": _program("r = x + min(n, 100) // 2"),
    "the greatest with a constant": _program("k = -9; r = x * 0 + max(k, -9) // 2", SIGNED),
    "a call with a literal": _program("r = x + twice(60)"),
    "a call with a variable": _program("k = 60; r = x + twice(k)"),
    "a call that returns one of two": _program("r = x + chosen(n > 3) * 100"),
    "a call that returns one by a constant": _program("r = x + chosen(C > 3) * 100"),
    "a call that returns a literal": _program("r = x * half()", ALL),
    "a negative and an inverted scalar": _program("k = 100; r = x + -k + ~k"),
    "a scalar converted to int8": _program("k = 300; r = x + k.to(tl.int8)"),
    "a scalar converted to float16": _program("k = 2049; r = x + k.to(tl.float16)", FLOATS),
    "a scalar converted to int64": _program("k = 2147483647; r = x + (k.to(tl.int64) + 1)"),
    "a scalar's bits": _program("t = 1.0; r = x + t.to(tl.int32, bitcast=True)"),
    "an index converted": _program("t = x.to(tl.int64) * 0; for i in range(3):"
                                   ";     t += i.to(tl.int64) * 4294967296; r = t"),
    "a rounded-up quotient": _program("k = -9; r = x * 0 + tl.cdiv(k, 4) + tl.cdiv(n, 4)", SIGNED),
    "a while loop": _program("t = 1; k = -20; while k < 0:;     k = k // 2;     t = t * 3 - k"
                             "; r = x + t"),
    "a remainder of floats": _program("t = -5.5; r = x * 0 + t % 2.0", FLOATS),
    "a sum of squares in a loop": _program("t = 0; for i in range(8):;     v = tl.load(x_ptr + i)"
                                           ";     t += v * v; r = t", NARROW),
    "a shift by an index": _program("r = x.to(tl.int64) * 0; for i in range(3, 6):"
                                    ";     r += (x << i) + (x >> i)"),
    "a variable and bits of a block": _program("k = 300; r = (x & k) + (x | k) * 3 + (x ^ k)"),
    "a literal and bits of a block": _program("r = (x & 60) + (x | 3) * 3 + (x ^ 85)"),
    "a variable compared with a block": _program("k = 300; r = (x < k) + (x == k) * 2", ALL),
    "an index in nested loops": _program("t = 0; for i in range(3):;     for j in range(i, -2, -1):"
                                         ";         t = t * 3 + (j - i) // 2; r = x + t"),
    "a variable that a branch changes": _program("k = 1; if n > 3:;     k = 100; r = x + k"),
    "an augmented quotient": _program("k = -35; k //= 4; k %= 5; k <<= 3; r = x * 0 + k", SIGNED),
    "a number that needs 64 bits": _program("k = 0x123456789; r = x + k // 1000"),
    "tl.maximum of scalars": _program("k = -7; r = x * 0 + tl.maximum(k, -7) // 2", SIGNED),
}  # fmt: skip


def _pointer(dtype: str) -> str:
    """Return how Triton's compiler calls a pointer to elements of a dtype."""
    kind = dtype_of(dtype)
    return f"*{kind.name if kind.is_floating() else kind.device_name}"


def _result_dtype(dtype: str, text: str) -> str:
    is_float = dtype in FLOATS or any(sign in text for sign in ("0.", "1.5", " / ", "f -", "half"))
    return "float64" if is_float else "int64"


def _loaded(text: str) -> Any:
    path = f"<triton scalars, {crc32(text.encode()):08x}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    names: dict[str, Any] = {"__name__": "triton_scalars"}
    exec(compile(text, path, "exec"), names)  # text of ours
    return names["kernel"]


def results_of(program: ScalarProgram, dtype: str, kind: EngineKind) -> tuple[Any, Any]:
    """Return the results of the IR and of our launch, as bits."""
    kernel = _loaded(program.text)
    x = np.array([0, 1, 2, 3, 5, 7, 100, 120]).astype(dtype)
    wide = _result_dtype(dtype, program.text.partition("x = tl.load")[2])
    expected = np.zeros(NUM_ELEMENTS, wide)
    signature = {"x_ptr": _pointer(dtype), "out_ptr": _pointer(wide), "n": "i32", "f": "fp32"}
    constants = {"N": NUM_ELEMENTS, "C": 5}
    text = ir_text(kernel, signature | dict.fromkeys(constants, "constexpr"), constants)
    numbers = {"n": np.int32(program.n), "f": np.float32(program.f)}
    with np.errstate(all="ignore"):
        evaluate(text, {"x_ptr": x, "out_ptr": expected, **numbers})
    machine = machine_named("ahbm-small")
    workspace, pes = Workspace(machine, kind), list(machine.grid.pes())[:1]
    out = workspace.place(np.zeros(NUM_ELEMENTS, wide), pes)
    arguments = (workspace.place(x, pes), out, program.n, program.f)
    workspace.launch(kernel, *arguments, NUM_ELEMENTS, 5, grid=(1,), pes=pes)
    return expected.view(np.int64), workspace.read(out).view(np.int64)


def _check(program: ScalarProgram, kind: EngineKind) -> Finding:
    """Count the dtypes in which all results equal those of the compiler's IR."""
    found = 0
    for dtype in program.dtypes:
        expected, ours = results_of(program, dtype, kind)
        found += int(np.array_equal(expected, ours))
    return exact(len(program.dtypes), found, "dtypes")


def oracles() -> Iterator[Row]:
    for number, (name, program) in enumerate(PROGRAMS.items(), 1):
        yield f"TR{number} {name}", partial(_check, program)
