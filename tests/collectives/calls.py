"""Every call of torch.distributed that moves tensors: what ranks bring, and what NumPy expects."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce as fold
from typing import Any

import ml_dtypes
import numpy as np

from tests.collectives.worlds import Array
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.operation import Operation
from tilewright.host import DPPolicy

STORAGE: Mapping[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "i4": ml_dtypes.int4,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "bool": np.bool_,
}
FLOATS = frozenset(("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2"))
EXACT_UP_TO = {"f16": 2048, "bf16": 256, "f8e4m3": 16, "f8e5m2": 8}
"""Narrow floats: their sums are exact in f32 alone."""
REDUCTIONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "avg": np.add,
    "bxor": np.bitwise_xor,
}
PLACEMENTS: Mapping[str, DPPolicy | None] = {
    "host": None,
    "rows": DPPolicy(cube="row_wise", pe="row_wise"),
    "columns": DPPolicy(cube="column_wise", pe="column_wise"),
    "copies": DPPolicy(),
    "one PE": DPPolicy(num_cubes=1, num_pes=1),
}


@dataclass(frozen=True, slots=True)
class Table:
    """Who makes the tensors of a case: of one dtype, lying as its placement says."""

    torch: Any
    dist: Any
    dtype: str
    placement: str
    reduction: str
    rank: int
    ranks: int

    def tensor(self, array: Array) -> Any:
        """Mixed: even ranks have it in rows, odd ones on the host."""
        placement = self.placement
        if placement == "mixed":
            placement = "host" if self.rank % 2 else "rows"
        values = array.astype(STORAGE[self.dtype])
        policy = PLACEMENTS[placement]
        if policy is None:
            return self.torch.from_numpy(values)
        made = self.torch.empty(array.shape, self.dtype, dp=policy)
        return made.copy_(values, timed=False)

    def zeros(self, like: Array) -> Any:
        return self.tensor(np.zeros_like(like))

    @property
    def peers(self) -> range:
        return range(self.ranks)


Inputs = Sequence[Array]
"""By rank; the first axis is for the ranks that a part of it goes to."""


def reduced(inputs: Inputs, reduction: str, dtype: str) -> Array:
    """In the order of ranks; inputs are such that no other order gives anything else."""
    wide = [values.astype(np.float64 if dtype in FLOATS else np.int64) for values in inputs]
    total: Array = fold(REDUCTIONS[reduction], wide)
    if dtype == "bool":
        return total.astype(np.bool_)
    if reduction == "avg":
        total = np.divide(total, len(inputs), dtype=np.float64 if dtype == "f64" else np.float32)
    return wrapped(total, dtype)


def wrapped(values: Array, dtype: str) -> Array:
    if dtype == "i4":
        return ((values + 8) % 16 - 8).astype(STORAGE[dtype])
    return values.astype(STORAGE[dtype])


def all_reduce(table: Table, inputs: Inputs) -> tuple[Array, Array]:
    tensor = table.tensor(inputs[table.rank])
    table.dist.all_reduce(tensor, op=table.reduction)
    return tensor.numpy(), reduced(inputs, table.reduction, table.dtype)


def reduce(table: Table, inputs: Inputs) -> tuple[Array, Array]:
    tensor = table.tensor(inputs[table.rank])
    root = table.ranks - 1
    table.dist.reduce(tensor, dst=root, op=table.reduction)
    if table.rank == root:
        return tensor.numpy(), reduced(inputs, table.reduction, table.dtype)
    return tensor.numpy(), inputs[table.rank]


def broadcast(table: Table, inputs: Inputs) -> tuple[Array, Array]:
    root = table.ranks // 2
    tensor = table.tensor(inputs[table.rank])
    table.dist.broadcast(tensor, src=root)
    return tensor.numpy(), inputs[root]


def all_gather(table: Table, inputs: Inputs) -> tuple[Array, Array]:
    outputs = [table.zeros(inputs[0]) for _ in table.peers]
    table.dist.all_gather(outputs, table.tensor(inputs[table.rank]))
    return np.stack([output.numpy() for output in outputs]), np.stack(inputs)


def all_gather_into_tensor(table: Table, inputs: Inputs) -> tuple[Array, Array]:
    """Ranks of even worlds pile up, those of odd ones put end to end."""
    expected = np.stack(inputs) if table.ranks % 2 == 0 else np.concatenate(inputs)
    output = table.zeros(expected)
    table.dist.all_gather_into_tensor(output, table.tensor(inputs[table.rank]))
    return output.numpy(), expected


def _parts(table: Table, inputs: Inputs, rank: int) -> list[Array]:
    """What a rank has for each other: its input, told apart by a shift."""
    flat = inputs[rank].reshape(-1)
    return [np.roll(flat, peer).reshape(inputs[rank].shape) for peer in table.peers]


def _reduced_part(table: Table, inputs: Inputs) -> Array:
    mine = [_parts(table, inputs, rank)[table.rank] for rank in table.peers]
    return reduced(mine, table.reduction, table.dtype)


def reduce_scatter(table: Table, inputs: Inputs) -> tuple[Array, Array]:
    output = table.zeros(inputs[0])
    parts = [table.tensor(part) for part in _parts(table, inputs, table.rank)]
    table.dist.reduce_scatter(output, parts, op=table.reduction)
    return output.numpy(), _reduced_part(table, inputs)


def reduce_scatter_tensor(table: Table, inputs: Inputs) -> tuple[Array, Array]:
    output = table.zeros(inputs[0])
    parts = _parts(table, inputs, table.rank)
    whole = np.stack(parts) if table.ranks % 2 == 0 else np.concatenate(parts)
    table.dist.reduce_scatter_tensor(output, table.tensor(whole), op=table.reduction)
    return output.numpy(), _reduced_part(table, inputs)


def _from_all(table: Table, inputs: Inputs) -> list[Array]:
    return [_parts(table, inputs, peer)[table.rank] for peer in table.peers]


def all_to_all(table: Table, inputs: Inputs) -> tuple[Array, Array]:
    outputs = [table.zeros(inputs[0]) for _ in table.peers]
    parts = [table.tensor(part) for part in _parts(table, inputs, table.rank)]
    table.dist.all_to_all(outputs, parts)
    return np.stack([each.numpy() for each in outputs]), np.stack(_from_all(table, inputs))


def all_to_all_single(table: Table, inputs: Inputs) -> tuple[Array, Array]:
    """Rank r has min(length, (r + s) mod 3) rows for rank s."""
    length = len(inputs[0])
    rows = [min(length, (table.rank + peer) % 3) for peer in table.peers]
    parts = _parts(table, inputs, table.rank)
    sent = np.concatenate([part[:count] for part, count in zip(parts, rows, strict=True)])
    came = _from_all(table, inputs)
    expected = np.concatenate([part[:count] for part, count in zip(came, rows, strict=True)])
    output = table.zeros(expected)
    table.dist.all_to_all_single(output, table.tensor(sent), rows, rows)
    return output.numpy(), expected


def gather(table: Table, inputs: Inputs) -> tuple[Array, Array]:
    root = table.ranks - 1
    is_root = table.rank == root
    outputs = [table.zeros(inputs[0]) for _ in table.peers] if is_root else None
    table.dist.gather(table.tensor(inputs[table.rank]), outputs, dst=root)
    if outputs is None:
        return np.zeros(0), np.zeros(0)
    return np.stack([output.numpy() for output in outputs]), np.stack(inputs)


def scatter(table: Table, inputs: Inputs) -> tuple[Array, Array]:
    root = table.ranks - 1
    output = table.zeros(inputs[0])
    parts = [table.tensor(values) for values in inputs] if table.rank == root else None
    table.dist.scatter(output, parts, src=root)
    return output.numpy(), inputs[table.rank]


def exchange(table: Table, inputs: Inputs) -> tuple[Array, Array]:
    """To the next rank, and from the one before."""
    after, before = (table.rank + 1) % table.ranks, (table.rank - 1) % table.ranks
    output = table.zeros(inputs[0])
    dist, mine = table.dist, table.tensor(inputs[table.rank])
    messages = [dist.P2POp(dist.isend, mine, after), dist.P2POp(dist.irecv, output, before)]
    for work in dist.batch_isend_irecv(messages):
        work.wait()
    return output.numpy(), inputs[before]


CALLS: Mapping[str, tuple[Operation, Callable[[Table, Inputs], tuple[Array, Array]]]] = {
    "all_reduce": (Operation.ALL_REDUCE, all_reduce),
    "reduce": (Operation.REDUCE, reduce),
    "broadcast": (Operation.BROADCAST, broadcast),
    "all_gather": (Operation.ALL_GATHER, all_gather),
    "all_gather_into_tensor": (Operation.ALL_GATHER, all_gather_into_tensor),
    "reduce_scatter": (Operation.REDUCE_SCATTER, reduce_scatter),
    "reduce_scatter_tensor": (Operation.REDUCE_SCATTER, reduce_scatter_tensor),
    "all_to_all": (Operation.ALL_TO_ALL, all_to_all),
    "all_to_all_single": (Operation.ALL_TO_ALL, all_to_all_single),
    "gather": (Operation.GATHER, gather),
    "scatter": (Operation.SCATTER, scatter),
    "exchange": (Operation.BROADCAST, exchange),
}


def can_run(algorithm: str, call: str) -> bool:
    """Messages of pairs have no algorithm of their own."""
    if call == "exchange":
        return algorithm == "direct"
    return algorithm == "auto" or CALLS[call][0] in ALGORITHMS[algorithm].operations


def has_meaning(dtype: str, reduction: str) -> bool:
    if reduction == "avg":
        return dtype in FLOATS
    return reduction != "bxor" or dtype not in FLOATS


def inputs_of(
    draw: np.random.Generator, shape: tuple[int, ...], ranks: int, dtype: str, reduction: str
) -> Inputs:
    """Small whole numbers: their reductions are exact in f32 and in every dtype that has no
    wrapping. Sums of narrow floats are not exact in these: who rounds more than once is found out.
    """
    high = {"sum": 2, "avg": 2, "prod": 3}.get(reduction, 5)
    if reduction in ("sum", "avg"):
        high = EXACT_UP_TO.get(dtype, high)
    inputs = [draw.integers(0, high, shape) for _ in range(ranks)]
    if reduction == "prod":  # all but three ranks bring what changes nothing
        for rank in range(3, ranks):
            inputs[rank] = np.ones(shape, np.int64)
    return [values.astype(STORAGE[dtype]) for values in inputs]
