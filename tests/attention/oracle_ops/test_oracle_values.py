"""The definitions of ops against cases worked out by hand."""

import math
from typing import Any

import numpy as np
import pytest

from tests.attention.oracle_ops.row import Array, OracleRow
from tests.attention.oracle_ops.table import ORACLES
from tilewright.attention.ops.table import OPS

ROW = OracleRow(num_pages=5, first_reserved=1, last_reserved=1, budget=2)


def array(*values: object) -> Array:
    return np.array(values, dtype=np.float64)


def column(*values: float) -> Array:
    """One number a page."""
    return np.array(values, dtype=np.float64).reshape(-1, 1, 1)


def call(name: str, *arrays: Array, **attributes: Any) -> Any:
    return ORACLES[name](ROW, *arrays, **attributes)


def numbers(result: Array) -> list[float]:
    return [float(value) for value in result.reshape(-1)]


def test_the_second_operand_of_gemm_gives_the_rows() -> None:
    query = array([[1, 2], [3, 4], [5, 6]])
    page = array([[1, 0], [10, 1]])
    assert call("GeMM", query, page).tolist() == [[[1, 3, 5], [12, 34, 56]]]


def test_a_query_of_the_row_serves_every_page_of_gemm() -> None:
    pages = array([[1, 0]], [[0, 1]], [[2, 2]])
    assert numbers(call("GeMM", array([[3, 4]]), pages)) == [3, 4, 14]


def test_heads_of_a_parameter_do_not_see_each_other() -> None:
    x = array([[1, 2], [3, 4]])  # two heads of one row
    weight = array([[[1, 1]], [[10, 0]]])
    assert call("GeMM", x, weight).tolist() == [[[3], [30]]]


def test_a_contraction_leaves_out_tokens_that_are_not_there() -> None:
    row = OracleRow(num_pages=1, block_size=3, last_page_tokens=2)
    x, y = array([[1, 2, 100]]), array([[3, 4, 100]])
    found = ORACLES["GeMM"](row, x, y, token_axes=((2,), (2,)))
    assert numbers(found) == [11]


def test_products_of_whole_numbers_stay_whole_and_wrap() -> None:
    x = np.array([[[2**30, 2**30]]])
    assert call("GeMM", x, np.array([[[1, 1]]])).tolist() == [[[-(2**31)]]]


def test_kron_over_rows_pairs_every_row_with_every_row() -> None:
    x, y = array([[1, 2], [3, 4]]), array([[10, 100], [5, 7]])
    assert call("Kron", x, y, dim=(1,)).tolist() == [[[10, 200], [5, 14], [30, 400], [15, 28]]]


def test_kron_over_columns_pairs_every_column_with_every_column() -> None:
    assert call("Kron", array([[1, 2]]), array([[3, 4]]), dim=(2,)).tolist() == [[[3, 4, 6, 8]]]


def test_kron_over_both_is_the_kronecker_product() -> None:
    x, y = array([[1, 2], [3, 4]]), array([[0, 5], [6, 7]])
    assert np.array_equal(call("Kron", x, y)[0], np.kron(x[0], y[0]))


def test_a_factor_score_sums_each_heads_best_descriptor() -> None:
    query = array([[1, 0], [0, 1]])
    weight = array([[[2], [0]], [[0], [3]]])  # two heads, d = 2, r = 1
    descriptors = array([[1], [4], [-1], [-2]])  # two of head 0, then two of head 1
    result = call("FactorScore", query, weight, descriptors, heads=2, descriptors=2, rank=1)
    assert numbers(result) == [2 * 4 + 3 * -1]


def test_a_learned_descriptor_mixes_tokens_then_channels() -> None:
    tokens = array([[1, 2], [3, 4]])
    token_weight = array([[[1], [1]]])  # the sum of both tokens
    channel_weight = array([[[1], [10]]])
    sizes = {"heads": 1, "descriptors": 1, "rank": 1}
    result = call("LearnedDescriptor", tokens, token_weight, channel_weight, **sizes)
    assert numbers(result) == [4 + 60]


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [
        ("Sum", [4, 6], [3, 7]),
        ("Mean", [2, 3], [1.5, 3.5]),
        ("Max", [3, 4], [2, 4]),
        ("Min", [1, 2], [1, 3]),
        ("L2Norm", [math.sqrt(10), math.sqrt(20)], [math.sqrt(5), 5]),
    ],
)
def test_reductions_keep_the_axis_they_reduce(
    name: str, rows: list[float], columns: list[float]
) -> None:
    x = array([[1, 2], [3, 4]])
    assert call(name, x, dim=1).shape == (1, 1, 2)
    assert call(name, x, dim=2).shape == (1, 2, 1)
    assert numbers(call(name, x, dim=1)) == pytest.approx(rows)
    assert numbers(call(name, x, dim=2)) == pytest.approx(columns)


@pytest.mark.parametrize(
    ("name", "value"), [("Sum", 7), ("Mean", 7 / 3), ("Max", 4), ("Min", 1), ("L2Norm", 21**0.5)]
)
def test_a_reduction_over_pages_sees_the_middle_only(name: str, value: float) -> None:
    result = call(name, column(100, 1, 2, 4, 100), dim=0)
    assert result.shape == (1, 1, 1)
    assert numbers(result) == pytest.approx([value])


@pytest.mark.parametrize("name", ["Sum", "Mean", "Max", "Min", "L2Norm"])
def test_a_reduction_over_no_pages_is_zero(name: str) -> None:
    row = OracleRow(num_pages=2)
    assert numbers(ORACLES[name](row, column(3, 4), dim=0)) == [0]


def test_an_interleaved_reduction_works_on_groups_of_neighbours() -> None:
    x = array([[1, 10], [2, 20], [5, 50], [9, 90]])
    assert call("MeanInterleave", x, dim=1, k=2).tolist() == [[[1.5, 15], [7, 70]]]
    assert call("MaxInterleave", x, dim=2, k=2).tolist() == [[[10], [20], [50], [90]]]
    assert np.array_equal(call("MinInterleave", x, dim=1, k=1), x)


def test_add_weighs_its_operands() -> None:
    x, y = column(1, 2), column(10, 20)
    assert numbers(call("Add", x, y, alpha=2.0, beta=-1.0)) == [-8, -16]
    assert numbers(call("Multiply", x, y)) == [10, 40]


def test_binary_ops_stretch_sides_of_size_one() -> None:
    assert call("Maximum", array([[1, 5]]), array([[2], [9]])).tolist() == [[[2, 5], [9, 9]]]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("WhereEqual", [1]),
        ("WhereNotEqual", [0, 2]),
        ("WhereGreater", [2]),
        ("WhereGreaterEqual", [1, 2]),
        ("WhereLess", [0]),
        ("WhereLessEqual", [0, 1]),
    ],
)
def test_a_mask_is_zero_where_its_relation_holds(name: str, kept: list[int]) -> None:
    mask = numbers(call(name, column(1, 2, 3), column(2, 2, 2)))
    assert mask == [0.0 if position in kept else -1e30 for position in range(3)]


@pytest.mark.parametrize(
    ("name", "attributes", "value"),
    [
        ("Relu", {}, 3.0),
        ("Relu", {"alpha": 4.0, "beta": -2.0}, -2.0),
        ("Sigmoid", {}, 0.5),
        ("Sigmoid", {"beta": -1.0}, 1 / (1 + math.exp(-3))),
        ("Silu", {}, 1.5),
        ("Silu", {"beta": -1.0}, 3 / (1 + math.exp(-3))),
        ("Add_Mul", {"alpha": 1.0, "beta": 2.0}, 7.0),
        ("Abs", {"alpha": -10.0, "beta": 2.0}, 4.0),
        ("Log", {"alpha": -2.0}, 0.0),
        ("Exp", {"beta": 0.0, "alpha": 1.0}, math.e),
    ],
)
def test_unary_ops_use_their_constants(
    name: str, attributes: dict[str, float], value: float
) -> None:
    assert numbers(call(name, column(3.0), **attributes)) == pytest.approx([value])


def test_a_softmax_covers_the_middle_and_passes_the_reserved_pages() -> None:
    result = numbers(call("Softmax", column(7, 0, math.log(3), 0, 9), scale=1.0))
    assert result == pytest.approx([7, 0.2, 0.6, 0.2, 9])


def test_a_softmax_of_masked_pages_only_is_uniform() -> None:
    masked = call("Softmax", column(0, -1e30, -1e30, -1e30, 0))
    assert numbers(masked) == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0])


def test_normalize_divides_by_the_norm_of_the_middle() -> None:
    assert numbers(call("Normalize", column(7, 3, 0, 4, 9))) == pytest.approx([7, 0.6, 0, 0.8, 9])
    assert numbers(call("Normalize", column(7, 0, 0, 0, 9))) == [7, 0, 0, 0, 9]


def test_a_convolution_is_causal_and_starts_at_the_middle() -> None:
    taps = [[[1.0]], [[10.0]]]
    result = call("Conv1d", column(7, 1, 2, 3, 9), weight=taps)
    assert numbers(result) == [7, 1, 2 + 10, 3 + 20, 9]


def test_transpose_and_reshape_differ() -> None:
    x = array([[1, 2, 3], [4, 5, 6]])
    assert call("Transpose", x).tolist() == [[[1, 4], [2, 5], [3, 6]]]
    reshaped = call("Reshape", x, rows=3, columns=2)
    assert reshaped.tolist() == [[[1, 2], [3, 4], [5, 6]]]


def test_a_mask_slice_ignores_the_values() -> None:
    x = array([[math.nan, 2, 3]])
    result = call("MaskSlice", x, start=1, end=2, dim=2, alpha=5.0, beta=-1.0)
    assert result.tolist() == [[[-1, 5, -1]]]


def test_a_slice_and_a_concat_undo_each_other() -> None:
    x = array([[1, 2, 3], [4, 5, 6]])
    front, back = (call("Slice", x, start=a, end=b, dim=2) for a, b in ((0, 1), (1, 3)))
    assert back.tolist() == [[[2, 3], [5, 6]]]
    assert np.array_equal(call("Concat", front, back, dim=2), x)
    assert call("Concat", array([[1, 2]]), array([[7]]), dim=1).tolist() == [[[1, 2], [7, 7]]]


def test_gather_reads_zero_outside() -> None:
    x = array([[1, 2, 3], [4, 5, 6]])
    assert call("Gather", x, np.array([[[2, 0, 9]]]), dim=2).tolist() == [[[3, 1, 0], [6, 4, 0]]]
    assert call("Gather", x, np.array([[[1], [-1]]]), dim=1).tolist() == [[[4, 5, 6], [0, 0, 0]]]
    pages = call("Gather", column(5, 6, 7), np.array([[[2]], [[0]]]), dim=0)
    assert numbers(pages) == [7, 5]


def test_positions_of_the_largest_prefer_the_lower_one() -> None:
    x = array([[3, 7, 7, 1]])
    assert numbers(call("ArgMax", x, dim=2)) == [1]
    assert numbers(call("ArgTop", x, k=3, dim=2)) == [1, 2, 0]
    assert numbers(call("ArgMax", column(9, 1, 4, 4, 9), dim=0)) == [2]


def test_a_running_sum_covers_the_middle_from_either_end() -> None:
    x = column(7, 1, 2, 3, 9)
    assert numbers(call("CumSum", x)) == [7, 1, 3, 6, 9]
    assert numbers(call("CumSum", x, reverse=True)) == [7, 6, 5, 3, 9]
    assert numbers(call("CumSum", x, span="all")) == [7, 8, 10, 13, 22]
    assert numbers(call("CumSum", array([[1, 2, 3]]), dim=2)) == [1, 3, 6]


def test_pooling_is_cut_at_the_ends_of_its_span() -> None:
    x = column(90, 1, 5, 3, 90)
    assert numbers(call("PoolPages", x, kind="max", before=1, after=0)) == [90, 1, 5, 5, 90]
    assert numbers(call("PoolPages", x, kind="mean", after=1)) == [90, 3, 4, 3, 90]
    assert numbers(call("PoolPages", x, kind="sum", before=1, span="all"))[:2] == [90, 91]


def test_a_shift_reads_another_page_or_the_fill() -> None:
    assert numbers(call("ShiftPages", column(1, 2, 3, 4, 5), offset=2, fill=-1)) == [
        3,
        4,
        5,
        -1,
        -1,
    ]
    assert numbers(call("ShiftPages", column(1, 2, 3, 4, 5), offset=-1)) == [0, 1, 2, 3, 4]


def test_whole_numbers_wrap_and_division_by_zero_is_zero() -> None:
    big, one = np.array([[[2**31 - 1]]]), np.array([[[1]]])
    assert call("Add", big, one).item() == -(2**31)
    assert call("ShiftLeft", one, np.array([[[31]]])).item() == -(2**31)
    assert call("ShiftRight", -one, np.array([[[40]]])).item() == -1
    assert call("FloorDivide", -one, np.array([[[2]]])).item() == -1
    assert call("Remainder", -one, np.array([[[3]]])).item() == 2
    assert call("FloorDivide", one, 0 * one).item() == call("Remainder", one, 0 * one).item() == 0
    assert call("PopCount", -one).item() == 32
    assert call("BitNot", one).item() == -2


@pytest.mark.parametrize(
    ("name", "left", "right", "value"),
    [
        ("Divide", -1.0, 0.0, -math.inf),
        ("Divide", 7.0, 2.0, 3.5),
        ("Pow", 2.0, 0.5, math.sqrt(2)),
        ("Pow", -2.0, 3.0, -8.0),
        ("Maximum", 2.0, 3.0, 3.0),
    ],
)
def test_binary_numbers(name: str, left: float, right: float, value: float) -> None:
    assert numbers(call(name, column(left), column(right))) == pytest.approx([value])


def test_zero_over_zero_and_broken_powers_of_negatives_are_nan() -> None:
    assert math.isnan(call("Divide", column(0), column(0)).item())
    assert math.isnan(call("Pow", column(-1), column(0.5)).item())


def test_a_cast_truncates_clamps_and_rounds() -> None:
    assert numbers(call("Cast", column(-1.9, 1e12, math.nan), dtype="int32")) == [-1, 2**31 - 1, 0]
    assert numbers(call("Cast", column(200, -200), dtype="int8")) == [127, -128]
    assert call("Cast", column(0, 0.1), dtype="bool").reshape(-1).tolist() == [False, True]
    assert numbers(call("Cast", column(1 + 2**-9), dtype="bfloat16")) == [1]


def test_a_choice_ignores_what_it_does_not_choose() -> None:
    mask = np.array([True, False]).reshape(2, 1, 1)
    assert numbers(call("Select", mask, column(1, math.nan), column(math.nan, 2))) == [1, 2]


def test_a_rotation_turns_pairs_and_back() -> None:
    quarter = column(math.pi / 2)
    assert call("Rope", array([[1, 0]]), quarter)[0, 0].tolist() == pytest.approx([0, 1])
    x = array([[1, 2, 3, 4]])
    split = call("Rope", x, column(5))
    woven = call("Rope", x[..., [0, 2, 1, 3]], column(5), interleaved=True)
    assert woven[0, 0].tolist() == pytest.approx(split[..., [0, 2, 1, 3]].reshape(-1).tolist())
    assert call("Rope", split, column(-5))[0, 0].tolist() == pytest.approx([1, 2, 3, 4])


def test_sources_know_the_page_and_its_tokens() -> None:
    row = OracleRow(num_pages=3, block_size=2, last_page_tokens=1, head=2, query_heads=2)
    assert numbers(ORACLES["PageIndex"](row)) == [0, 1, 2]
    assert numbers(ORACLES["PageAge"](row)) == [2, 1, 0]
    assert numbers(ORACLES["TokenCount"](row)) == [2, 2, 1]
    assert ORACLES["TokenValid"](row)[2].reshape(-1).tolist() == [True, False]
    assert numbers(ORACLES["TokenPosition"](row)) == [0, 1, 2, 3, 4, 5]
    assert numbers(ORACLES["QueryHeadIndex"](row)) == [4, 5]
    assert ORACLES["ReservedPages"](row).reshape(-1).tolist() == [True, False, True]
    last = OracleRow(num_pages=3, block_size=2, last_page_tokens=1, page=2)
    assert numbers(ORACLES["TokenCount"](last)) == [1]


def test_reductions_leave_out_tokens_that_are_not_there() -> None:
    row = OracleRow(num_pages=1, block_size=3, last_page_tokens=2)
    x = array([[1], [3], [99]])
    assert numbers(ORACLES["Mean"](row, x, dim=1, token_axes=((1,),))) == [2]
    assert numbers(ORACLES["Softmax"](row, x, dim=1, token_axes=((1,),)))[2] == 0
    assert numbers(ORACLES["FieldRead"](row, x, token_axes=((1,),))) == [1, 3, 0]


def test_every_op_has_a_definition_and_no_definition_is_left_over() -> None:
    assert set(ORACLES) == set(OPS)
