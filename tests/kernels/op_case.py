"""One function of the language at a time: what it is called, and what it must mean."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.kernels.argument import Named
from tests.kernels.case import Array, rng_of
from tests.language.meaning.values import evaluate
from tilewright.language.block_type import block_type
from tilewright.language.dtype import dtype_of, float16, float32, int8, int32
from tilewright.language.meaning import MEANINGS

__all__ = ("OPS", "OpCase", "run_meaning")

F32, F16, I32 = np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.int32)
U32, I64 = np.dtype(np.uint32), np.dtype(np.int64)

SPECIAL = np.repeat([0.0, -0.0, np.inf, -np.inf, 1.0, -1.0, 65504.0], 6)
SHIFTS = ("op_shl", "op_shr")
IN_TRITON = {"floordiv": "quotient", "mod": "remainder"}  # the ops of these operators there
# functions of integers that are tried on the whole range
WIDE = frozenset(
    {
        "op_add",
        "op_sub",
        "op_mul",
        "op_floordiv",
        "op_mod",
        "op_and",
        "op_or",
        "op_xor",
        "op_shl",
        "op_shr",
        "op_not",
        "op_neg",
        "op_lt",
        "fn_abs",
        "fn_umulhi",
        "fn_maximum",
        "fn_minimum",
        "fn_xor_sum",
        "fn_reduce_or",
        "fn_sum_all",
    }
)


def run_meaning(op: str, *operands: Array, attributes: tuple[Any, ...] = ()) -> Any:
    types = tuple(block_type(dtype_of(each.dtype), each.shape) for each in operands)
    return evaluate(MEANINGS[op].bind(types, attributes), *operands)


@dataclass(frozen=True, slots=True)
class OpCase:
    """A function of ``source/op.py`` on ``dtype``; ``meaning`` computes the same from arrays."""

    function: str  # in the source
    says: str  # what it calls, as the language spells it: "tl.exp" or "+"
    dtype: np.dtype[Any]
    meaning: Callable[..., Array]
    num_operands: int = 1
    tile: bool = False  # operands of 8 x 16 rather than of 128
    tolerance: float = 0.0  # relative; 0: bit for bit
    specials: bool = True  # zeros and infinities among floats; not where Triton leaves them open

    @property
    def name(self) -> str:
        return f"{self.function}-{self.dtype.name}"

    @property
    def kernel(self) -> str:
        if self.tile:
            return "tile_kernel" if self.num_operands == 1 else "two_tile_kernel"
        return ("unary_kernel", "binary_kernel", "ternary_kernel")[self.num_operands - 1]

    def operands(self) -> tuple[Array, ...]:
        rng = rng_of(self.name)
        shape = (8, 16) if self.tile else (128,)
        return tuple(self._operand(rng, shape, place) for place in range(self.num_operands))

    def _operand(self, rng: np.random.Generator, shape: tuple[int, ...], place: int) -> Array:
        if self.dtype.kind == "f":
            values = (2 * rng.normal(size=shape)).astype(self.dtype)
            if (
                self.specials and not self.tile
            ):  # each special one meets each, and some meet themselves
                values[: SPECIAL.size] = np.roll(SPECIAL, place * 7).astype(self.dtype)
                values[SPECIAL.size : 50] = 1.5
            return values
        if self.function in WIDE and (place == 0 or self.function not in SHIFTS):
            bits = np.iinfo(self.dtype)
            return rng.integers(bits.min, bits.max, shape, self.dtype, endpoint=True)
        return rng.integers(1 if self.num_operands > 1 else 0, 12, shape).astype(self.dtype)

    def expected(self) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(self.meaning(*self.operands()))

    def arguments(self) -> dict[str, Any]:
        operands, expected = self.operands(), self.expected()
        pointers = dict(zip(("x_ptr", "y_ptr", "z_ptr"), operands, strict=False))
        stored = expected.dtype if expected.dtype != np.bool_ else np.dtype(np.int8)
        sizes = {"R": 8, "C": 16} if self.tile else {"N": 128}
        out = {"out_ptr": np.zeros(expected.size, stored), "M": expected.size}
        return {**pointers, **out, "FUNCTION": Named(self.function), **sizes}


def plain(op: str, attributes: tuple[Any, ...] = ()) -> Callable[..., Array]:
    return lambda *operands: run_meaning(op, *operands, attributes=attributes)


def op_cases(
    names: str, prefix: str, dtypes: tuple[np.dtype[Any], ...], count: int
) -> list[OpCase]:
    """Names that function, language and table of meanings share."""
    return [
        OpCase(
            f"{prefix}_{name}",
            f"tl.{name}" if prefix == "fn" else name,
            dtype,
            plain(IN_TRITON.get(name, name)),
            count,
        )
        for name in names.split()
        for dtype in dtypes
    ]


def tile_case(
    function: str, says: str, meaning: Callable[..., Array], *, dtype: np.dtype[Any] = F32,
    count: int = 1, tolerance: float = 0.0,
) -> OpCase:  # fmt: skip
    return OpCase(function, says, dtype, meaning, count, tile=True, tolerance=tolerance)


def larger(left: Array, right: Array) -> Array:
    return np.where(left > right, left, right)


def split_sum(x: Array) -> Array:
    even, odd = run_meaning("split", x.reshape(8, 8, 2))
    return np.asarray(run_meaning("add", run_meaning("mul", even, np.array(2, x.dtype)), odd))


def best_and_place(x: Array) -> Array:
    value, index = run_meaning("max", x, attributes=(1, False, True))
    return np.asarray(value * 100 + index, dtype=np.float32)


def swizzled(x: Array, y: Array) -> Array:
    sizes = (np.array(each, np.int32) for each in (16, 8, 3))
    i, j = run_meaning("swizzle2d", x, y, *sizes)
    return np.asarray(i * 1000 + j)


def drawn(op: str) -> Callable[[Array], Array]:
    return lambda x: np.asarray(run_meaning(op, np.array(17, np.int32), x, attributes=(10,)))


def made(x: Array) -> Array:
    parts = (
        evaluate(MEANINGS["full"].bind((), ((128,), 0, float32))),
        evaluate(MEANINGS["full"].bind((), ((128,), 2.5, float32))),
        np.arange(128, dtype=np.int32),
    )
    total = x
    for part in parts:
        total = run_meaning("add", total, part)
    return total


def draw(op: str, seed: int, x: Array, rounds: int = 10) -> Any:
    return run_meaning(op, np.array(seed, np.int32), x, attributes=(rounds,))


def mixed(op: str) -> Callable[[Array], Array]:
    def of(x: Array) -> Array:
        a, b, c, d = draw(op, 17, x)
        return np.asarray(a + b - c * d)

    return of


def folded(op: str, rounds: int) -> Callable[[Array], Array]:
    return lambda x: np.bitwise_xor.reduce(draw(op, 17, x, rounds))


def philox_folded(x: Array, y: Array) -> Array:
    counters = (x, y, x, y)
    words = run_meaning("philox", np.array(17, np.int32), *counters, attributes=(10,))
    return np.asarray(np.bitwise_xor.reduce(words))


def normals(x: Array, y: Array) -> Array:
    radius = np.sqrt(-2 * np.log(np.maximum(1e-7, draw("rand", 3, x).astype(np.float64))))
    angle = 2 * np.pi * draw("rand", 4, y).astype(np.float64)
    return np.asarray(radius * np.cos(angle) - radius * np.sin(angle)).astype(np.float32)


def merged(x: Array, y: Array) -> Array:
    rising = run_meaning("sort", x, attributes=(None, False))
    falling = run_meaning("sort", y, attributes=(None, True))
    both = run_meaning("cat", rising, falling, attributes=(1,))
    return np.asarray(run_meaning("bitonic_merge", both, attributes=(None, False)))


def by_methods(x: Array) -> Array:
    y = np.sqrt(np.abs(x)) + np.log(np.exp(x))
    y = y.reshape(8, 16).T.reshape(128) + x.sum() * x.max()
    return np.asarray(np.cumsum(y, dtype=np.float32))


def by_scalars(x: Array) -> Array:
    n = int(x.sum())
    bound = min(n, 50) + max(n, 60)
    y = x + 3 + n % 7 - bound // 11
    return np.asarray(y if n > 10 and bound else -y).astype(np.int32)


HINTS = (
    "tl.multiple_of tl.max_contiguous tl.max_constancy tl.assume tl.static_assert "
    "tl.device_assert tl.debug_barrier tl.static_range tl.range"
)

ELEMENTWISE = [
    *op_cases("add sub mul", "op", (F32, F16, I32), 2),
    *op_cases("div", "op", (F32, F16, I32), 2),
    *op_cases("floordiv mod", "op", (I32,), 2),
    *op_cases("mod", "op", (F32,), 2),
    *op_cases("and or xor shl shr", "op", (I32, U32), 2),
    *op_cases("eq ne lt le gt ge", "op", (F32, F16, I32), 2),
    *op_cases("not", "op", (I32,), 1),
    *op_cases("neg", "op", (F32, F16, I32), 1),
    *op_cases("abs", "fn", (F32, F16, I32), 1),
    *op_cases("ceil cos erf exp exp2 floor log", "fn", (F32,), 1),
    *op_cases("log2 rsqrt sigmoid sin sqrt sqrt_rn", "fn", (F32,), 1),
    *op_cases("cdiv", "fn", (I32,), 2),
    *op_cases("umulhi", "fn", (I32, U32, I64), 2),
    *op_cases("div_rn", "fn", (F32,), 2),
    *op_cases("fma", "fn", (F32,), 3),
    OpCase("fn_fdiv", "tl.fdiv", F32, plain("fdiv", (False, False)), 2),
    *(
        OpCase(f"fn_{op}{suffix}", f"tl.{op}", dtype, plain(op, (bool(suffix),)), 2, specials=False)
        for op in ("maximum", "minimum")
        for suffix in ("", "_nan")
        for dtype in (F32, I32)
    ),
    OpCase("fn_clamp", "tl.clamp", F32, plain("clamp", (False,)), 3),
    OpCase(
        "fn_where", "tl.where", F32, lambda x, y, z: run_meaning("where", x > 0, y, z), 3
    ),
    OpCase("fn_cast_f16", "Block.to", F32, plain("cast", (float16, None))),
    OpCase("fn_cast_f32", "tl.cast", F16, plain("cast", (float32, None))),
    OpCase("fn_cast_i8", "Block.to", F32, plain("cast", (int8, None)), specials=False),
    OpCase("fn_bitcast", "Block.to", F32, plain("bitcast", (int32,))),
    OpCase("fn_histogram", "tl.histogram", I32, plain("histogram", (16,))),
    OpCase("fn_rand", "tl.rand", I32, drawn("rand")),
    OpCase("fn_randn", "tl.randn", I32, drawn("randn")),
    OpCase("fn_randint", "tl.randint", I32, drawn("randint")),
    OpCase("fn_swizzle2d", "tl.swizzle2d", I32, swizzled, 2),
    OpCase("fn_zeros_full_arange", "tl.zeros tl.full tl.arange", F32, made),
]  # fmt: skip

MOVES = [
    tile_case("fn_trans", "tl.trans", plain("trans", (None,))),
    tile_case("fn_permute", "tl.permute tl.expand_dims", lambda x: x.T),
    tile_case("fn_reshape", "tl.reshape", plain("reshape", ((16, 8),))),
    tile_case("fn_view", "tl.view", plain("reshape", ((4, 32),))),
    tile_case("fn_ravel", "tl.ravel", plain("reshape", ((128,),))),
    tile_case(
        "fn_broadcast_to",
        "tl.broadcast_to",
        lambda x: run_meaning(
            "broadcast_to", run_meaning("sum", x, attributes=(1, True, None)), attributes=((8, 16),)
        ),
    ),
    tile_case("fn_flip", "tl.flip", plain("flip", (1,))),
    tile_case("fn_split", "tl.split", split_sum),
    tile_case("fn_join", "tl.join", plain("join"), count=2),
    tile_case("fn_interleave", "tl.interleave", plain("interleave"), count=2),
    tile_case("fn_cat", "tl.cat", plain("cat", (1,)), count=2),
    tile_case(
        "fn_dot", "tl.dot", lambda x, y: run_meaning("dot", x, y.T, attributes=(None, None, None)),
        count=2, tolerance=1e-6,
    ),
    tile_case(
        "fn_gather",
        "tl.gather",
        lambda x, y: run_meaning("gather", x, y.astype(np.int32) & 15, attributes=(1,)),
        count=2,
    ),
]  # fmt: skip

ROWS = [
    tile_case("fn_sum", "tl.sum", plain("sum", (1, False, None))),
    tile_case("fn_sum_all", "tl.sum", plain("sum", (None, True, None)), dtype=I32),
    tile_case("fn_max", "tl.max", plain("max", (0, False, False))),
    tile_case("fn_min", "tl.min", plain("min", (1, True, False)), dtype=F16),
    tile_case("fn_max_index", "tl.max", best_and_place),
    tile_case("fn_argmax", "tl.argmax", plain("argmax", (1, False)), dtype=I32),
    tile_case("fn_argmin", "tl.argmin", plain("argmin", (0, False))),
    tile_case("fn_xor_sum", "tl.xor_sum", plain("xor_sum", (1, False)), dtype=I32),
    tile_case("fn_reduce_or", "tl.reduce_or", plain("reduce_or", (0, False)), dtype=I32),
    tile_case("fn_reduce", "tl.reduce", plain("reduce", (1, False, larger))),
    tile_case("fn_cumsum", "tl.cumsum", plain("cumsum", (1, False, None))),
    tile_case("fn_cumsum_reverse", "tl.cumsum", plain("cumsum", (0, True, None))),
    tile_case("fn_cumprod", "tl.cumprod", plain("cumprod", (1, False, None))),
    tile_case(
        "fn_associative_scan", "tl.associative_scan", plain("associative_scan", (1, False, larger))
    ),
    tile_case("fn_sort", "tl.sort", plain("sort", (None, False))),
    tile_case("fn_sort_descending", "tl.sort", plain("sort", (None, True)), dtype=I32),
    tile_case("fn_topk", "tl.topk", plain("topk", (4, None, True))),
    tile_case("fn_softmax", "tl.softmax", plain("softmax", (1,))),
]  # fmt: skip

REST = [
    *op_cases("add sub mul", "fn", (F32,), 2),
    tile_case("fn_broadcast", "tl.broadcast", lambda x, y: x.sum(1, keepdims=True) + y, count=2),
    tile_case("fn_squeeze", "tl.squeeze tl.unsqueeze tl.zeros_like", lambda x: x),
    tile_case("fn_bitonic_merge", "tl.bitonic_merge", merged, count=2),
    OpCase("fn_rand4x", "tl.rand4x", I32, mixed("rand4x")),
    OpCase("fn_randn4x", "tl.randn4x", I32, mixed("randn4x")),
    OpCase("fn_randint4x", "tl.randint4x", I32, folded("randint4x", 7)),
    OpCase("fn_philox", "tl.philox", I32, philox_folded, 2),
    OpCase("fn_uniform", "tl.uint_to_uniform_float", I32, lambda x: draw("rand", 5, x)),
    OpCase("fn_normal", "tl.pair_uniform_to_normal", I32, normals, 2, tolerance=1e-6),
    OpCase("fn_hints", HINTS, I32, lambda x: x + np.int32(5)),
    OpCase("fn_methods", "Block's methods", F32, by_methods, tolerance=1e-5, specials=False),
    OpCase("fn_scalars", "min max tl.to_tensor and", I32, by_scalars),
]

OPS: tuple[OpCase, ...] = (*ELEMENTWISE, *MOVES, *ROWS, *REST)
