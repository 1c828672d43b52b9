"""What a composite is: operands, tiles, and what is done to results on their way out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from types import MappingProxyType
from typing import Any

from tilewright.errors import KernelTypeError
from tilewright.language.affine import broadcast_shapes
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import DType
from tilewright.language.executor import Executor
from tilewright.language.meaning import MEANINGS
from tilewright.language.pointer import Part, Ref, as_operand
from tilewright.language.value import Block


@dataclass(frozen=True, slots=True)
class Tiling:
    """Parts of each axis, in order; where a tile does not divide an axis, the last is smaller."""

    rows: tuple[Part, ...]
    columns: tuple[Part, ...]
    depths: tuple[Part, ...]


def plan_tiles(extents: tuple[int, int, int], tile_shape: tuple[int, int, int]) -> Tiling:
    """Of a result of M x N with K products each, all three from 1 up.

    >>> tiling = plan_tiles((64, 80, 100), (64, 64, 64))
    >>> tiling.columns
    (Part(start=0, size=64), Part(start=64, size=16))
    """
    axes = zip("MNK", extents, tile_shape, strict=True)
    rows, columns, depths = (_parts(name, extent, size) for name, extent, size in axes)
    return Tiling(rows, columns, depths)


def _parts(name: str, extent: int, size: int) -> tuple[Part, ...]:
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        found = f"{size!r} as the {name} of a tile"
        raise KernelTypeError("tile_shape", found, "a whole number from 1 up", "correct it")
    return tuple(Part(start, min(size, extent - start)) for start in range(0, extent, size))


def parts_of_operand(shape: tuple[int, ...], place: tuple[Part, ...]) -> tuple[Part, ...]:
    """What of an operand meets a place of the result, if it is broadcast to the result.

    >>> parts_of_operand((1, 80), (Part(32, 32), Part(64, 16)))
    (Part(start=0, size=1), Part(start=64, size=16))
    """
    met = place[len(place) - len(shape) :]
    return tuple(
        Part(0, 1) if extent == 1 else part for extent, part in zip(shape, met, strict=True)
    )


class Scope(Enum):
    """When a stage runs."""

    K_TILE = "k_tile"  # on the product of each k tile, before it is added up
    OUTPUT_TILE = "output_tile"  # on each tile of the result, before its store
    KERNEL = "kernel"  # on the whole result, once, before all stores


@dataclass(frozen=True, slots=True)
class Stage:
    """One op of an epilogue; ``operand`` is broadcast to the result."""

    op: str
    attributes: tuple[Any, ...]
    operand: Ref | Block | None
    scope: Scope


@dataclass(frozen=True, slots=True)
class CompositePlan:
    """A pipeline over tiles: "gemm", or an op of the vector unit, on refs or blocks."""

    op: str
    operands: tuple[Ref | Block, ...]
    acc_dtype: DType | None  # of a gemm, in which its products are added up
    result: BlockType
    tiling: Tiling
    stages: tuple[Stage, ...]
    out: Ref | None  # where results go; None: they are a block

    def __str__(self) -> str:
        return f"{'a gemm' if self.op == 'gemm' else self.op} into {self.result}"


_ATTRIBUTES: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {"maximum": (False,), "minimum": (False,)}  # of two numbers, not NaN
)
_OPS = frozenset(
    name
    for name, meaning in MEANINGS.items()
    if (not meaning.attributes or name in _ATTRIBUTES) and {1, 2} & set(meaning.num_operands)
)
_OTHER_NAMES: Mapping[str, tuple[str, float | None]] = MappingProxyType(
    {"bias": ("add", None), "scale": ("mul", None), "relu": ("maximum", 0.0)}
)


def attributes_of(op: str) -> tuple[Any, ...]:
    return _ATTRIBUTES.get(op, ())


def check_vector_op(program: Executor, name: Any, what: str, others: Iterable[str] = ()) -> None:
    """Refuse a name that no op with one or two operands has."""
    names = sorted({*_OPS, *others})
    if name not in names:
        near = get_close_matches(str(name), names, n=3)
        fix = f"did you mean {', '.join(near)}?" if near else "name another"
        raise program.error(f"{name!r} as {what}", "an op of one or two operands", fix)


def product_type(left: BlockType, right: BlockType, acc_dtype: DType | None) -> BlockType:
    """Of a sum of products; what cannot be multiplied is refused."""
    bound = MEANINGS["dot"].bind((left, right), (None, None, acc_dtype))
    kind: Any = bound.type  # a dot has one result
    return block_type(kind.dtype, kind.shape)


def parse_epilogue(
    program: Executor, entries: Any, result: BlockType, num_k_tiles: int | None
) -> tuple[Stage, ...]:
    """Checked as a whole before anything is issued; ``num_k_tiles`` is None where there is no k."""
    return tuple(_parse_stage(program, entry, result, num_k_tiles) for entry in entries)


def _parse_stage(
    program: Executor, entry: Any, result: BlockType, num_k_tiles: int | None
) -> Stage:
    entry = (entry,) if isinstance(entry, str) else tuple(entry)
    if not 1 <= len(entry) <= 3:
        found = f"the epilogue {entry!r}"
        raise program.error(found, "(name, operand, scope)", "leave out or add parts")
    name, value, word = (*entry, None, None)[:3]
    check_vector_op(program, name, "an epilogue", _OTHER_NAMES)
    scope = _parse_scope(program, word, num_k_tiles)
    op, constant = _OTHER_NAMES.get(name, (name, None))
    if constant is not None:
        if value is not None:
            raise program.error(f"an operand of {name!r}", "none", "leave it out")
        value = constant
    operand = None
    if isinstance(value, bool | int | float):
        operand = program.constant(value, result.dtype)
    elif value is not None:
        operand = as_operand(program, value)
    types: tuple[BlockType, ...] = (result,)
    if operand is not None:
        shape = operand.shape
        if scope is Scope.K_TILE and len(shape) == result.rank + 1 and shape[0] in (1, num_k_tiles):
            shape = shape[1:]  # without its axis of k tiles
        if len(shape) > result.rank or broadcast_shapes(shape, result.shape) != result.shape:
            found = f"an operand of shape {operand.shape} for the epilogue {name!r}"
            expected = f"one that broadcasts to {result.shape}"
            raise program.error(found, expected, "reshape it")
        types = (result, block_type(operand.dtype, shape))
    bound = MEANINGS[op].bind(types, attributes_of(op))
    if bound.type is not result:
        where, fix = f"epilogue {name!r}", "convert its operand"
        raise KernelTypeError(where, f"a result {bound.type}", str(result), fix)
    return Stage(op, attributes_of(op), operand, scope)


def _parse_scope(program: Executor, word: Any, num_k_tiles: int | None) -> Scope:
    words = [scope.value for scope in Scope]
    if word is None:
        return Scope.OUTPUT_TILE
    if word not in words:
        raise program.error(f"the scope {word!r}", " or ".join(words), "name one of them")
    scope = Scope(word)
    if scope is Scope.K_TILE and num_k_tiles is None:
        found = "the scope 'k_tile' without a sum over k"
        raise program.error(found, "output_tile or kernel", "name one of them")
    return scope
