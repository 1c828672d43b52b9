"""Compiled code gives what its definition in Python gives: values, addresses, times, words."""

import operator
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tests.language.bed import Array, Bed
from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.errors import KernelTypeError, TilewrightError
from tilewright.executor import order
from tilewright.executor.kernel_program import KernelProgram
from tilewright.executor.order import Span
from tilewright.language.affine import Affine, Box
from tilewright.language.dtype import float32, int4, int16, int32, int64
from tilewright.language.known import known_binary
from tilewright.language.scalar import Int32, Int64, scalar_result, strong_number
from tilewright.language.triton.scalar import FUNCTIONS as TRITON
from tilewright.language.value import Block, Index, Mask, Pointers, Value
from tilewright.native import native_core

ASKED = "what is not known"


class Asked:
    """A program that only says that it was asked."""

    desk = None

    def binary(self, op: str, left: Any, right: Any) -> Any:
        return ASKED, op, left, right

    def subscript(self, value: Any, key: Any) -> Any:
        return ASKED, value, key


PROGRAM: Any = Asked()

OPERATORS: dict[str, Any] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}

shapes = st.sampled_from([(), (1,), (4,), (1, 1), (3, 1), (1, 4), (3, 4), (2, 3, 4), (2, 1, 1)])
near = st.integers(-40, 60)
wide = st.one_of(near, st.integers(-(2**33), 2**33), st.integers(-(2**64), 2**64))


@st.composite
def affines(draw: st.DrawFn, numbers: st.SearchStrategy[int] = near) -> Affine:
    shape = draw(shapes)
    base = draw(numbers.filter(lambda number: -(2**62) < number < 2**62))
    return Affine(base, tuple(draw(st.integers(-6, 6)) for _ in shape), shape)


indices = st.builds(Index, st.just(PROGRAM), affines(), st.sampled_from([int32, int64]))
pointers = st.builds(
    Pointers, st.just(PROGRAM), affines(wide), st.sampled_from([float32, int16, int4])
)


@st.composite
def masks(draw: st.DrawFn) -> Mask:
    shape = draw(shapes)
    low = tuple(draw(st.integers(0, extent)) for extent in shape)
    high = tuple(draw(st.integers(0, extent)) for extent in shape)
    return Mask(PROGRAM, Box(low, high, shape))


numbers = st.one_of(wide, near.map(Int32), near.map(Int64), st.booleans(), st.just(1.5))
operands = st.one_of(indices, pointers, masks(), numbers)


def told(value: Any) -> Any:
    """All that can be seen of a value."""
    match value:
        case Index():
            return "index", value.dtype, str(value.affine)
        case Mask():
            return "mask", value.box
        case Pointers():
            return "pointers", value.element, str(value.affine), value.offsets
    return value


def defined(op: str, left: Any, right: Any) -> Any:
    """What the definition knows, or the error that it raises."""
    try:
        return told(known_binary(op, left, right))
    except TilewrightError as error:
        return error


@needs_both_engines
@given(st.sampled_from(sorted(OPERATORS)), operands, operands)
def test_an_operator_gives_what_is_known_or_asks(op: str, left: Any, right: Any) -> None:
    assume(isinstance(left, Value) or isinstance(right, Value))
    found = OPERATORS[op](left, right)
    if isinstance(found, tuple):
        asked, asked_op, *asked_operands = found
        assert asked == ASKED
        if not isinstance(left, Value) and op in SWAPPED:  # Python turns comparisons round
            left, right, op = right, left, SWAPPED[op]
        assert asked_op == op
        assert asked_operands[0] is left
        assert asked_operands[1] is right
    else:
        assert told(found) == defined(op, left, right)


@needs_both_engines
@given(st.sampled_from(sorted(OPERATORS)), indices, st.one_of(indices, near, near.map(Int32)))
def test_what_is_known_of_indices_is_not_asked(op: str, left: Index, right: Any) -> None:
    known = defined(op, left, right)
    asks = isinstance(OPERATORS[op](left, right), tuple)
    assert asks == (known is None or isinstance(known, TilewrightError))


@needs_both_engines
@given(st.sampled_from(["minimum", "maximum", "add", "lt"]), operands, operands)
def test_a_call_by_name_knows_what_the_operator_does(op: str, left: Any, right: Any) -> None:
    assume(isinstance(left, Value) or isinstance(right, Value))
    core: Any = native_core()
    found = core.known_binary(op, left, right)
    if found is not None:
        assert told(found) == defined(op, left, right)


@needs_both_engines
@given(
    st.one_of(indices, masks(), pointers),
    st.lists(st.sampled_from([None, slice(None)]), min_size=1, max_size=4).map(tuple),
)
def test_new_axes_are_where_none_stands(value: Any, key: tuple[Any, ...]) -> None:
    found = value[key]
    if isinstance(found, tuple):
        assert key.count(slice(None)) > len(value.shape)
        return
    extents = list(value.shape)
    expected = [1 if part is None else extents.pop(0) for part in key] + extents
    assert found.shape == tuple(expected)
    inside = found.box if isinstance(found, Mask) else found.affine
    before = value.box if isinstance(value, Mask) else value.affine
    dtype = () if isinstance(value, Mask) else (np.dtype(object),)
    np.testing.assert_array_equal(inside.array(*dtype).ravel(), before.array(*dtype).ravel())


AXES = tuple([1] * 16)


@pytest.mark.parametrize(
    "value",
    [
        Index(PROGRAM, Affine(3, AXES, AXES), int32),
        Mask(PROGRAM, Box.whole(AXES)),
        Pointers(PROGRAM, Affine(64, AXES, AXES), float32),
    ],
)
def test_more_axes_than_an_index_can_have_are_refused(value: Any) -> None:
    class Expanding(KernelProgram):
        def __init__(self) -> None:
            """Nothing is issued."""

    with pytest.raises(KernelTypeError, match="expected at most 16; reshape the block instead"):
        Expanding().expand(value, 0)


@pytest.mark.parametrize("op", ["add", "mul"])
def test_an_index_of_more_than_64_bits_is_not_known(op: str) -> None:
    index = Index(PROGRAM, Affine(2**62, (1,), (8,)), int64)
    assert known_binary(op, index, 2**62) is None
    assert OPERATORS[op](index, 2**62)[0] == ASKED


def test_an_address_of_more_than_64_bits_is_not_known() -> None:
    start = Pointers(PROGRAM, Affine(2**62, (), ()), float32)
    assert known_binary("add", start, 2**61) is None
    assert (start + 2**61)[0] == ASKED


# -- numbers -------------------------------------------------------------------------------------

integers = st.one_of(
    near, st.integers(-(2**33), 2**33), st.sampled_from([-(2**63), 2**63 - 1, -(2**31), 2**64])
)
kinds = st.sampled_from([int, Int32, Int64])
TRITON_DIVISIONS = {name: TRITON[f".{name}"] for name in ("quotient", "remainder")}
NUMBER_OPS = [
    *["add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "shl", "shr"],
    *TRITON_DIVISIONS,
]


def outcome(function: Any, *args: Any) -> Any:
    """A number with its type, or the words of the error."""
    try:
        found = function(*args)
    except (TilewrightError, ZeroDivisionError) as error:
        return str(error)
    return type(found), int(found)


@needs_both_engines
@given(st.sampled_from(NUMBER_OPS), kinds, kinds, integers, integers)
def test_numbers_are_computed_as_they_are_defined(
    op: str, left_kind: Any, right_kind: Any, left: int, right: int
) -> None:
    assume(left_kind is not int or right_kind is not int)
    one, other = left_kind(left), right_kind(right)
    found = outcome((OPERATORS | TRITON_DIVISIONS)[op], one, other)
    assert found == outcome(scalar_result, op, one, other)


@needs_both_engines
@given(st.one_of(integers, st.booleans(), st.floats(), st.tuples(near, st.none())))
def test_an_assigned_number_is_as_it_is_defined(value: Any) -> None:
    assume(value != 2**64)  # fits no dtype
    core: Any = native_core()
    found, expected = core.strong_number(value), strong_number(value)
    assert type(found) is type(expected)
    assert repr(found) == repr(expected)


# -- order ---------------------------------------------------------------------------------------


@st.composite
def spans(draw: st.DrawFn) -> Span:
    size = draw(st.integers(1, 24))
    stride = draw(st.one_of(st.integers(size, 64), st.just(40_000)))
    count = draw(st.integers(1, 6))
    return Span(draw(st.integers(0, 300)), count, size, size if count == 1 else stride)


@needs_both_engines
@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.lists(spans(), min_size=1, max_size=3),
            st.sampled_from((False, False, True)),
            st.sampled_from((False, False, True)),
        ),
        max_size=20,
    )
)
def test_accesses_come_after_the_same_ones(
    accesses: list[tuple[bool, list[Span], bool, bool]],
) -> None:
    core: Any = native_core()
    plain, compiled = order.AccessOrder(6), core.AccessOrder(6)
    for command, (writes, touched, releases, acquires) in enumerate(accesses, 1):
        for each in (plain, compiled):
            each.release(writes and releases)
        before = "before_write" if writes else "before_read"
        expected = getattr(plain, before)(touched, command)
        assert getattr(compiled, before)(touched, command) == expected
        for each in (plain, compiled):
            getattr(each, "note_write" if writes else "note_read")(touched, command, 10 * command)
            if acquires:
                each.acquire(command, 10 * command)


# -- accesses ------------------------------------------------------------------------------------

ROWS, COLUMNS = 6, 8
PITCH = 16


def window_kernel(
    x_ptr: Any, out_ptr: Any, start: int, row: int, column: int, low: int, high: int, width: int,
    fill: tl.constexpr,
) -> None:  # fmt: skip
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    places = start + i[:, None] * row + j[None, :] * column
    mask = (i[:, None] >= low) & (i[:, None] < high) & (j[None, :] < width)
    tile = tl.load(x_ptr + places, mask=mask, other=fill)
    tl.store(out_ptr + places, tile + tile, mask=mask)
    tl.store(out_ptr + 512 + (i[:, None] * COLUMNS + j[None, :]), tile)


@pytest.fixture(scope="module")
def beds() -> list[Bed]:
    return [Bed(num_pes=2, engine=kind) for kind in (EngineKind.REFERENCE, EngineKind.NATIVE)]


def run_window(bed: Bed, values: Array, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    x, out = bed.place(values), bed.place(np.zeros(1024, values.dtype))
    result = bed.launch(window_kernel, x, out, *arguments)
    found = bed.read(out)
    bed.workspace.free(x)
    bed.workspace.free(out)
    return found.tobytes(), result.latency_ps, result.counters


steps = st.sampled_from([-PITCH, -3, -1, 0, 1, 2, COLUMNS, PITCH])


@needs_both_engines
@settings(max_examples=40)
@given(
    st.sampled_from([np.float32, np.int8, np.float16, np.int64, "bfloat16"]),
    steps,
    steps,
    st.integers(0, ROWS),
    st.integers(0, ROWS),
    st.integers(0, COLUMNS),
    st.sampled_from([0, -7]),
)
def test_accesses_take_the_same_bytes_at_the_same_times(
    beds: list[Bed],
    dtype: Any,
    row: int,
    column: int,
    low: int,
    high: int,
    width: int,
    other: int,
) -> None:
    storage = tl.bfloat16.storage if dtype == "bfloat16" else np.dtype(dtype)
    values = (np.arange(512) % 100).astype(storage)
    arguments = (256, row, column, low, high, width, other)
    reference, native = (run_window(bed, values, arguments) for bed in beds)
    assert native == reference


# -- life ----------------------------------------------------------------------------------------


@needs_both_engines
def test_a_program_and_its_values_leave_nothing_behind() -> None:
    script = """
import gc
import numpy as np
from tests.language.bed import Bed
from tilewright import language as tl

def kernel(x_ptr, out_ptr):
    n = tl.arange(0, 64)
    x = tl.load(x_ptr + n)
    tl.store(out_ptr + n, tl.exp(x * 2.0) - tl.max(x, axis=0))

bed = Bed()
x = bed.place(np.ones(64, np.float32))
bed.launch(kernel, x, x)
del bed, x
gc.collect()
kinds = {"Block", "Desk", "EffectLog", "Index", "Node", "PlanShelf", "Pointers", "NativeProgram"}
rooms = ("tilewright.native._core", "tilewright.language", "tilewright.executor")
print([type(each) for each in gc.get_objects()
       if type(each).__name__ in kinds and type(each).__module__.startswith(rooms)])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"
    assert "leaked" not in done.stderr


@needs_both_engines
def test_a_block_that_is_dropped_gives_its_space_back() -> None:
    class Released(Asked):
        def __init__(self) -> None:
            self.numbers: list[int] = []

        def release(self, number: int) -> None:
            self.numbers.append(number)

    program: Any = Released()
    whole = Block(program, None, None, 7)  # type: ignore[arg-type]
    part = Block(program, None, None, 7, whole)  # type: ignore[arg-type]
    del part
    assert program.numbers == []
    del whole
    assert program.numbers == [7]


WITHOUT_CORE = """
import sys
sys.modules["tilewright.native._core"] = None
import numpy as np
from tests.language.bed import Bed
from tests.language.test_front import PITCH, run_window
from tilewright.engine import native_built
found, latency_ps, counters = run_window(
    Bed(num_pes=2), np.arange(512, dtype=np.float32), (256, PITCH, 1, 1, 5, 6, -7)
)
print(native_built(), latency_ps, counters.loaded_bytes, sum(found))
"""


@needs_both_engines
def test_without_a_compiler_the_definition_gives_the_same() -> None:
    arguments = (256, PITCH, 1, 1, 5, 6, -7)
    found, latency_ps, counters = run_window(
        Bed(num_pes=2), np.arange(512, dtype=np.float32), arguments
    )
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CORE], check=True, capture_output=True, text=True
    )
    expected = ["False", str(latency_ps), str(counters.loaded_bytes), str(sum(found))]
    assert done.stdout.split() == expected
