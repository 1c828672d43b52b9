"""Random kernel programs: their values and times, as one digest a program."""

import hashlib
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

import tilewright.language as tl
from tilewright.host import DPPolicy, LocalShard, LocalSize, RuntimeContext

__all__ = ("run_random_kernel",)

Source = list[str]
Choice = TypeVar("Choice")

POLICIES = (
    DPPolicy(pe="row_wise", num_sips=1, num_cubes=1),
    DPPolicy(pe="column_wise", num_sips=1, num_cubes=1),
    DPPolicy(cube="row_wise", pe="row_wise", num_sips=1),
    DPPolicy(cube="row_wise", pe="column_wise", num_sips=1),
)
UNARY = (
    "tl.exp(-tl.abs({a}))",
    "tl.sqrt(tl.abs({a}))",
    "-{a}",
    "tl.maximum({a}, 0.0)",
    "{a} * 1.5",
)
BINARY = (
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    "tl.maximum({a}, {b})",
    "tl.where({a} > {b}, {a}, {b})",
)
REDUCTIONS = ("tl.sum", "tl.max", "tl.min")
ROW_SCALINGS = ("{a} - tl.{r}({a}, axis={x})[{at}]", "{a} + tl.{r}({a}, axis={x})[{at}]")


class _Choices:
    """A seeded source of choices."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def below(self, limit: int) -> int:
        return int(self._generator.integers(limit))

    def choice(self, options: Sequence[Choice]) -> Choice:
        return options[self.below(len(options))]

    def is_one_in(self, number: int) -> bool:
        return self.below(number) == 0


def run_random_kernel(seed: int) -> dict[str, Any]:
    """Run the program of a seed on ``ahbm-small``; return its values' hash, time and counters."""
    rng = _Choices(seed)
    policy = rng.choice(POLICIES)
    dtype = rng.choice(("f16", "f32", "bf16"))
    namespace: dict[str, Any] = {"tl": tl}
    source = _source(rng)
    exec(compile(source, f"random_kernel_{seed}.py", "exec"), namespace)
    with RuntimeContext("ahbm-small", seed=seed) as torch:
        shape = (64 * rng.choice((1, 2)), 64 * rng.choice((1, 2)))
        draw = np.random.default_rng(seed)
        tensors = []
        for name in ("x", "y", "out"):
            values = draw.integers(-8, 9, shape).astype(np.float32)
            tensor = torch.empty(shape, dtype, dp=policy, name=name)
            tensors.append(tensor.copy_(torch.from_numpy(values)))
        shards = [LocalShard(tensor) for tensor in tensors]
        sizes = [LocalSize(tensors[0], axis) for axis in range(2)]
        report = torch.launch(namespace["kernel"], *shards, *sizes).report
        values = tensors[2].numpy().astype(np.float32)
        return {
            "source": source,
            "values": hashlib.sha256(values.tobytes()).hexdigest(),
            "latency_ps": report.latency_ps,
            "execution_ps": report.execution_ps,
            "now_ps": torch.now_ps,
        }


def _source(rng: _Choices) -> str:
    """Return a kernel that streams tiles of two tensors through random ops into a third."""
    lines = ["def kernel(x, y, out, m, n):"]
    whole = rng.is_one_in(2)
    if whole:
        lines += ["    a0 = tl.load(x, shape=(m, n))", "    a1 = tl.load(y, shape=(m, n))"]
        indent = "    "
    else:
        lines += [
            "    columns = tl.arange(0, n)",
            f"    for step in range(0, m, {rng.choice((1, 2, 4))}):",
            "        at = step * n + columns",
            "        a0 = tl.load(x + at)",
            "        a1 = tl.load(y + at)",
        ]
        indent = "        "
    lines += [indent + line for line in _operations(rng, is_matrix=whole)]
    return "\n".join(lines) + "\n"


def _operations(rng: _Choices, *, is_matrix: bool) -> Source:
    lines: Source = []
    num_values = 2
    for _ in range(1 + rng.below(8)):
        a, b = (f"a{rng.below(num_values)}" for _ in range(2))
        choice = rng.below(5)
        if choice < 2:
            text = rng.choice(UNARY).format(a=a)
        elif choice < 4:
            text = rng.choice(BINARY).format(a=a, b=b)
        elif is_matrix:
            axis = rng.below(2)
            at = ("None, :", ":, None")[axis]
            text = rng.choice(ROW_SCALINGS).format(a=a, r=rng.choice(("sum", "max")), x=axis, at=at)
        else:
            text = f"{a} - {rng.choice(REDUCTIONS)}({a}, axis=0)"
        lines.append(f"a{num_values} = {text}")
        num_values += 1
    last = f"a{num_values - 1}"
    if is_matrix:
        if rng.is_one_in(3):
            lines.append(f"{last} = tl.dot({last}, tl.trans({last})) if m == n else {last}")
        lines.append(f"tl.store(out, {last})")
    else:
        lines.append(f"tl.store(out + at, {last})")
        if rng.is_one_in(3):
            lines.append("tl.store(out + at, tl.load(out + at) + 1.0)")
    return lines
