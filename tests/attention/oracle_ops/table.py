"""ORACLES: the meaning of every op by its name, for one row, slow and in float64.

``ORACLES[name](row, *arrays, **attributes)`` takes the operands in the order of the op's call and
the attributes under the names of its constructor. Arrays are ``[num_pages or 1, r, c]``; a
parameter is the array of the layer at hand. The result is one array, or for a selection the
ascending logical positions of the pages to read, reserved ones included. Fields of the cache are
rounded afterwards, with ``round_to``; nothing else is.
"""

import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tests.attention.oracle_ops import indexing, layout, linear, over_pages, selection
from tests.attention.oracle_ops import pointwise as each
from tests.attention.oracle_ops.reduce import KINDS, interleaved, reduction
from tests.attention.oracle_ops.row import OracleRow

Oracle = Callable[..., Any]


def by_row(function: Oracle, *ignored: str) -> Oracle:
    """Attributes in ``ignored`` are taken by the op and change nothing."""

    def oracle(row: OracleRow, *arrays: Any, **attributes: Any) -> Any:
        used = {name: value for name, value in attributes.items() if name not in ignored}
        return function(row, *arrays, **used)

    return oracle


def anywhere(function: Oracle, *ignored: str) -> Oracle:
    """What does not depend on the row at all."""
    return by_row(lambda _, *arrays, **used: function(*arrays, **used), *ignored)


def many(functions: Mapping[str, Oracle], *ignored: str) -> dict[str, Oracle]:
    return {name: anywhere(function, *ignored) for name, function in functions.items()}


REDUCTIONS: dict[str, Oracle] = {
    **{name: by_row(reduction(kind)) for name, kind in KINDS.items()},
    **{f"{name}Interleave": anywhere(interleaved(kind)) for name, kind in KINDS.items()},
}

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "Equal": operator.eq,
    "NotEqual": operator.ne,
    "Greater": operator.gt,
    "GreaterEqual": operator.ge,
    "Less": operator.lt,
    "LessEqual": operator.le,
}

BINARY = many(
    {
        "Multiply": each.binary(operator.mul),
        "Maximum": each.binary(max),
        "Minimum": each.binary(min),
        "Divide": each.binary(each.ratio),
    },
    "alpha",
    "beta",
)

POINTWISE = many(
    {
        "Add": each.add,
        **{f"Where{name}": each.where(relation) for name, relation in RELATIONS.items()},
        "Relu": each.relu,
        "Sigmoid": each.sigmoid,
        "Silu": each.silu,
        "Add_Mul": each.scaled(lambda value: value),
        "Abs": each.scaled(abs),
        "Log": each.scaled(each.log_of),
        "Exp": each.scaled(each.exp_of),
        "Sqrt": each.unary(each.root),
        "Rsqrt": each.unary(lambda value: each.ratio(1.0, each.root(value))),
        "Pow": each.power,
        "Clamp": each.clamp,
        "Sign": each.unary(lambda value: math.copysign(1.0, value) if value else value),
        "Floor": each.unary(math.floor),
        "Round": each.unary(round),
        "Select": each.select,
        "FloorDivide": each.integer(operator.floordiv),
        "Modulo": each.integer(operator.mod),
        "BitAnd": each.integer(operator.and_),
        "BitOr": each.integer(operator.or_),
        "BitXor": each.integer(operator.xor),
        "ShiftLeft": each.integer(operator.lshift),
        "ShiftRight": each.integer(operator.rshift),
    }
)

LINEAR = many(
    {
        "GeMM": linear.gemm,
        "GeMM.parameter": linear.gemm_with_parameter,
        "GeMV": linear.gemv,
        "Kron": linear.kron,
        "FactorScore": linear.factor_score,
        "LearnedDescriptor": linear.learned_descriptor,
    },
    "H",
    "m",
    "r",
)

LAYOUT = many(
    {
        "Transpose": layout.transpose,
        "Reshape": layout.reshape,
        "MaskSlice": layout.mask_slice,
        "Fill": layout.fill,
        "Load": layout.copy,
        "Save": layout.copy,
        "ArgMax": indexing.arg_max,
        "ArgTop": indexing.arg_top,
        "Gather": indexing.gather,
        "CumSum": indexing.cum_sum,
    },
    "batch_dim",
)

OVER_PAGES: dict[str, Oracle] = {
    "Softmax": by_row(over_pages.softmax, "dim"),
    "Normalize": by_row(over_pages.normalize, "dim"),
    "Conv1d": by_row(over_pages.conv1d, "dim", "dtype", "device"),
    "Shift": by_row(over_pages.shift),
    "MaxPool": by_row(over_pages.pooling(max)),
    "MeanPool": by_row(over_pages.pooling(KINDS["Mean"])),
    "SumPool": by_row(over_pages.pooling(math.fsum)),
    "PageIndex": by_row(indexing.page_index),
    "PageAge": by_row(indexing.page_age),
    "TokenCount": by_row(indexing.token_count),
    "StepIndex": by_row(indexing.step_index),
    "HeadIndex": by_row(indexing.head_index),
}

SELECTIONS: dict[str, Oracle] = {
    "topK": by_row(selection.top_k),
    # every answer with a recall of 1 - tolerate_ratio is right, so the exact one always is
    "approxTopK": by_row(selection.top_k, "tolerate_ratio"),
    "TopK": by_row(selection.fixed_top_k),
    "topP": by_row(selection.top_p),
    "threshold": by_row(selection.threshold),
    "Union": anywhere(selection.union),
    "Intersection": by_row(selection.intersection),
}

ORACLES: Mapping[str, Oracle] = MappingProxyType(
    {**REDUCTIONS, **BINARY, **POINTWISE, **LINEAR, **LAYOUT, **OVER_PAGES, **SELECTIONS}
)
