import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.meaning.exact import as_float64, round_float, ulp
from tests.language.meaning.values import FLOATS, bound_for, charges_of, result_of, seeds
from tilewright.device.vector import COST_TABLE
from tilewright.errors import InternalError, KernelTypeError, RegistryError
from tilewright.language.block_type import block_type
from tilewright.language.dtype import DTYPES, DType, float32, float64, int32
from tilewright.language.meaning import MEANINGS, Bound, GemmCharge, Meaning, evaluate
from tilewright.language.meaning.bound import build_table


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_sigmoid_is_rounded_once(dtype: DType) -> None:
    values = np.linspace(-20, 20, 64).astype(dtype.storage)
    exact = 1 / (1 + np.exp(-as_float64(values)))
    found = as_float64(result_of("sigmoid", values))
    assert np.all(np.abs(found - round_float(exact, dtype)) <= 4 * ulp(exact, dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_a_softmax_of_narrow_floats_is_float32(dtype: DType, axis: int | None) -> None:
    values = np.random.default_rng(1).normal(0, 3, (8, 16)).astype(dtype.storage)
    found = result_of("softmax", values, attributes=(axis,))
    assert found.dtype == (np.float64 if dtype is float64 else np.float32)
    along = 0 if axis is None else axis
    powers = np.exp(as_float64(values) - as_float64(values).max(along, keepdims=True))
    np.testing.assert_allclose(found, powers / powers.sum(along, keepdims=True), rtol=2e-6)


def test_a_softmax_is_charged_by_its_parts() -> None:
    bound = bound_for("softmax", np.zeros((8, 16), np.float16), attributes=(1,))
    ops = [each.op for each in charges_of("softmax", np.zeros((8, 16)), attributes=(1,))]
    assert ops == ["max", "sub", "exp", "sum", "div"]
    with pytest.raises(InternalError, match="one charge of the vector unit"):
        _ = bound.cost_op


@given(value=st.integers(0, 2**30), divisor=st.integers(1, 2**20))
def test_cdiv_rounds_up(value: int, divisor: int) -> None:
    found = result_of("cdiv", np.array([value], np.int32), np.array([divisor], np.int32))
    assert found == -(-value // divisor)


def test_cdiv_of_floats_is_refused() -> None:
    with pytest.raises(KernelTypeError, match="expected integers"):
        bound_for("cdiv", np.zeros(4, np.float32), np.ones(4, np.float32))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_a_swizzle_walks_groups_of_rows_column_by_column(
    rows: int, columns: int, group: int
) -> None:
    i, j = np.mgrid[:rows, :columns].astype(np.int32)
    sizes = [np.array(each, np.int32) for each in (rows, columns, group)]
    new_i, new_j = evaluate(bound_for("swizzle2d", i, j, *sizes), i, j, *sizes)
    expected = [
        (row, column)
        for first in range(0, rows, group)
        for column in range(columns)
        for row in range(first, min(first + group, rows))
    ]
    assert list(zip(new_i.ravel().tolist(), new_j.ravel().tolist(), strict=True)) == expected


ATTRIBUTES: dict[str, object] = {
    "axis": -1,
    "axes": (0, 1),
    "combine": lambda left, right: left + right,
    "end": 4,
    "k": 4,
    "left_format": "e4m3",
    "left_k_pack": True,
    "n_rounds": 10,
    "num_bins": 4,
    "right_format": "e4m3",
    "right_k_pack": True,
    "shape": (4, 4),
    "start": 0,
    "value": 1,
}
OPTIONAL = ("dtype", "rounding", "out_dtype", "input_precision", "max_num_imprecise_acc")
NAMED_DTYPE = ("cast", "bitcast", "full")
OPERAND_SHAPES: dict[str, tuple[int, ...]] = {
    "split": (4, 2),
    "histogram": (16,),
    "squeeze": (4, 1),
}
SCALAR_FIRST = ("philox", "rand", "rand4x", "randint", "randint4x", "randn", "randn4x")


def attribute(op: str, name: str) -> object:
    if name in OPTIONAL:
        return float32 if op in NAMED_DTYPE and name == "dtype" else None
    return 0 if op == "expand_dims" else ATTRIBUTES.get(name, False)


def bind_somehow(meaning: Meaning) -> Bound:
    """With the first dtype that the op takes."""
    attributes = tuple(attribute(meaning.name, name) for name in meaning.attributes)
    shape = OPERAND_SHAPES.get(meaning.name, (4, 4))
    for dtype in (float32, *DTYPES):
        types = [block_type(dtype, shape)] * meaning.num_operands[0]
        if meaning.name in SCALAR_FIRST:
            types[0] = block_type(dtype, ())
        if meaning.name == "gather":
            types[1] = block_type(int32, shape)
        try:
            return meaning.bind(tuple(types), attributes)
        except KernelTypeError:
            continue
    raise AssertionError(meaning.name)


@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_every_charge_is_a_line_of_the_cost_table(name: str) -> None:
    for charge in bind_somehow(MEANINGS[name]).charges:
        assert isinstance(charge, GemmCharge) or charge.op in COST_TABLE


def test_a_name_has_one_meaning() -> None:
    with pytest.raises(RegistryError, match="two meanings of 'add'"):
        build_table((MEANINGS["add"], MEANINGS["add"]))


def test_the_number_of_operands_and_attributes_is_checked() -> None:
    tile = block_type(float32, (4,))
    with pytest.raises(KernelTypeError, match=r"add\(fp32\[4\]\), expected 2 operands"):
        MEANINGS["add"].bind((tile,))
    with pytest.raises(InternalError, match="expected 1: axis"):
        MEANINGS["flip"].bind((tile,))


@given(seeds)
def test_what_is_no_command_costs_nothing(seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(4, 4)).astype(np.float32)
    bound = bound_for("reshape", values, attributes=((16,),))
    assert (bound.cost_op, bound.cost_elements, bound.cost_dtype) == (None, 0, None)
