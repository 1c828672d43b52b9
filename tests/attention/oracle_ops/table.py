"""ORACLES: the meaning of every op by its name, for one row, slow and in float64.

``ORACLES[name](row, *arrays, token_axes=..., **attributes)`` takes the operands in the order of the
op and the attributes under the names of its fields. Arrays are ``[num_pages or 1, r, c]`` in
float64, int64 or bool; a parameter is ``[1, ...]``, the table of the layer at hand. ``token_axes``
has for each operand the axes that run over the tokens of a page; without it all tokens are there.
Results are arrays again; a selection is a bool for each page, reserved ones true. Only Cast rounds;
fields of the cache are rounded with ``round_to``.

Three ops stand for something outside the row: AcrossHeads takes the operand of each KV head of the
request, AttentionMass the mass of the last step, PromptMass the prompt's queries and keys.
"""

import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tests.attention.oracle_ops import (
    feedback,
    layout,
    linear,
    over_pages,
    position,
    reduce,
    selection,
)
from tests.attention.oracle_ops import pointwise as each
from tests.attention.oracle_ops.row import AnyArray, OracleRow, operand_of

Oracle = Callable[..., Any]
TokenAxes = tuple[tuple[int, ...], ...]


def by_row(function: Oracle, *ignored: str) -> Oracle:
    """For a definition on arrays; attributes in ``ignored`` say nothing that it must know."""

    def oracle(row: OracleRow, *arrays: Any, token_axes: TokenAxes = (), **attributes: Any) -> Any:
        del token_axes
        used = {name: value for name, value in attributes.items() if name not in ignored}
        return function(row, *arrays, **used)

    return oracle


def by_tokens(function: Oracle, *ignored: str) -> Oracle:
    """For a definition that must know which tokens are there."""

    def oracle(
        row: OracleRow, *arrays: AnyArray, token_axes: TokenAxes = (), **attributes: Any
    ) -> Any:
        axes = token_axes or ((),) * len(arrays)
        pairs = zip(arrays, axes, strict=True)
        operands = [operand_of(row, array, of) for array, of in pairs]
        return by_row(function, *ignored)(row, *operands, **attributes)

    return oracle


def anywhere(functions: Mapping[str, Oracle], *ignored: str) -> dict[str, Oracle]:
    """For definitions that do not depend on the row at all."""

    def without_row(function: Oracle) -> Oracle:
        return by_row(lambda _, *arrays, **used: function(*arrays, **used), *ignored)

    return {name: without_row(function) for name, function in functions.items()}


RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "Equal": operator.eq,
    "NotEqual": operator.ne,
    "Greater": operator.gt,
    "GreaterEqual": operator.ge,
    "Less": operator.lt,
    "LessEqual": operator.le,
}

REDUCTIONS: dict[str, Oracle] = {
    **{name: by_tokens(reduce.reduction(name)) for name in reduce.KINDS},
    **{f"{name}Interleave": by_tokens(reduce.interleaved(name)) for name in reduce.KINDS},
    "ArgMax": by_tokens(reduce.arg_max),
    **anywhere({"ArgTop": reduce.arg_top}),
}

BINARY = anywhere(
    {
        "Add": each.add,
        "Multiply": each.binary(operator.mul),
        "Maximum": each.binary(max),
        "Minimum": each.binary(min),
        "Divide": each.floats(each.ratio),
        "Pow": each.floats(each.power),
        "FloorDivide": each.whole(each.floor_divided),
        "Remainder": each.whole(each.remainder),
        "BitAnd": each.whole(operator.and_),
        "BitOr": each.whole(operator.or_),
        "BitXor": each.whole(operator.xor),
        "ShiftLeft": each.whole(each.shifted_left),
        "ShiftRight": each.whole(each.shifted_right),
        **{name: each.compared(relation) for name, relation in RELATIONS.items()},
        **{f"Where{name}": each.where(relation) for name, relation in RELATIONS.items()},
        "Select": each.select,
        "Union": each.any_of,
        "Intersection": each.all_of,
    }
)

UNARY = anywhere(
    {
        "Relu": each.relu,
        "Sigmoid": each.sigmoid,
        "Silu": each.silu,
        "Add_Mul": each.scaled(lambda value: value),
        "Abs": each.scaled(abs),
        "Log": each.scaled(each.log_of),
        "Exp": each.scaled(each.exp_of),
        "Sqrt": each.unary(each.root),
        "Rsqrt": each.unary(lambda value: each.ratio(1.0, each.root(value))),
        "Sign": each.unary(each.sign),
        "Floor": each.unary(math.floor),
        "Clamp": each.clamp,
        "BitNot": each.bit_not,
        "PopCount": each.pop_count,
        "Cast": each.cast,
        "Complement": each.complement,
    }
)

PRODUCTS: dict[str, Oracle] = {
    "GeMM": by_tokens(linear.gemm),
    **anywhere({"Kron": linear.kron}),
    **anywhere(
        {"FactorScore": linear.factor_score, "LearnedDescriptor": linear.learned_descriptor},
        "heads",
        "descriptors",
        "rank",
    ),
}

LAYOUT = anywhere(
    {
        "Transpose": layout.transpose,
        "Reshape": layout.reshape,
        "MaskSlice": layout.mask_slice,
        "Slice": layout.cut,
        "Concat": layout.concat,
        "Gather": layout.gather,
        "Rope": position.rope,
    }
)

OVER_PAGES: dict[str, Oracle] = {
    "Softmax": by_tokens(over_pages.softmax),
    "Normalize": by_tokens(over_pages.normalize),
    "Conv1d": by_row(over_pages.conv1d),
    "CumSum": by_tokens(over_pages.cum_sum),
    "PoolPages": by_tokens(over_pages.pool_pages),
    "ShiftPages": by_row(over_pages.shift_pages),
    **anywhere({"AcrossHeads": over_pages.across_heads}),
}

SOURCES: dict[str, Oracle] = {
    "PageIndex": by_row(position.page_index),
    "PageAge": by_row(position.page_age),
    "PageCount": by_row(lambda row: position.per_row(row.num_pages)),
    "TokenCount": by_row(position.token_count),
    "TokenPosition": by_row(position.token_position),
    "TokenValid": by_row(position.token_valid),
    "ReservedPages": by_row(position.reserved_pages),
    "StepIndex": by_row(lambda row: position.per_row(row.step)),
    "LayerIndex": by_row(lambda row: position.per_row(row.layer)),
    "HeadIndex": by_row(lambda row: position.per_row(row.head)),
    "QueryHeadIndex": by_row(position.query_head_index),
    "AttentionMass": by_row(feedback.attention_mass),
    "PromptMass": by_row(feedback.prompt_mass),
    "FieldRead": by_tokens(position.field_read, "variable"),
    **anywhere(dict.fromkeys(("Input", "StateRead", "ParameterRead"), position.copied), "variable"),
    **anywhere({"Constant": position.constant}),
}

SELECTIONS: dict[str, Oracle] = {
    "TopK": by_row(selection.top_k, "per_head"),
    # every answer with a recall of 1 - tolerate_ratio is right, so the exact one always is
    "ApproxTopK": by_row(selection.top_k, "tolerate_ratio", "per_head"),
    "TopP": by_row(selection.top_p, "per_head"),
    "Threshold": by_row(selection.threshold, "per_head"),
    "SelectedTokens": by_row(selection.selected_tokens),
}

ORACLES: Mapping[str, Oracle] = MappingProxyType(
    REDUCTIONS | BINARY | UNARY | PRODUCTS | LAYOUT | OVER_PAGES | SOURCES | SELECTIONS
)
