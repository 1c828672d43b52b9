import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.vector import COST_TABLE, CostClass, VectorLanes
from tilewright.errors import RegistryError, UnitError
from tilewright.machine.spec import TcmSpec, VectorSpec
from tilewright.units import DTYPE_BITS

sizes = st.integers(1, 5_000)
dtypes = st.sampled_from(sorted(DTYPE_BITS))


def lanes_of(lanes: int = 512, *, simple: int = 1, hard: int = 4) -> VectorLanes:
    spec = VectorSpec(lanes=lanes, simple_cycles=simple, complex_cycles=hard)
    return VectorLanes("pe0.vector", spec, TcmSpec())


def ops_of(*classes: CostClass) -> st.SearchStrategy[str]:
    return st.sampled_from([op for op, cost in COST_TABLE.items() if cost in classes])


def dealt_passes(elements: int, lanes: int, lanes_each: int) -> int:
    """Deal the elements out, lane by lane, and count how often the lanes were filled."""
    passes, free = 0, 0
    for _ in range(elements * lanes_each):
        if free == 0:
            passes, free = passes + 1, lanes
        free -= 1
    return passes


@given(
    op=ops_of(CostClass.SIMPLE, CostClass.COMPLEX),
    elements=sizes,
    dtype=dtypes,
    lanes=st.integers(2, 700),
    simple=st.integers(1, 3),
    hard=st.integers(1, 9),
)
def test_elementwise_work_is_dealt_over_the_lanes(
    op: str, elements: int, dtype: str, lanes: int, simple: int, hard: int
) -> None:
    passes = dealt_passes(elements, lanes, 2 if dtype in ("f64", "i64", "u64") else 1)
    each = simple if COST_TABLE[op] is CostClass.SIMPLE else hard
    unit = lanes_of(lanes, simple=simple, hard=hard)
    assert unit.cycles(op, elements, dtype) == passes * each


@pytest.mark.parametrize(
    ("op", "elements", "dtype", "cycles"),
    [
        ("add", 1, "f32", 1),
        ("add", 512, "f32", 1),
        ("add", 513, "bf16", 2),
        ("add", 512, "f64", 2),
        ("exp", 4096, "f16", 32),
        ("div", 512, "f32", 4),
        ("sum", 512, "f32", 10),
        ("sum", 4096, "f32", 17),
        ("max", 4096, "f64", 25),
        ("sort", 1, "f32", 1),
        ("sort", 2, "f32", 1),
        ("sort", 8, "f32", 6),
        ("sort", 4096, "f32", 312),  # 4096 x 12 x 13 / 4 compare-exchanges over 512 lanes
        ("topk", 4095, "f32", 312),
        ("trans", 512, "u8", 1),
        ("trans", 4096, "f32", 32),
        ("gather", 129, "f32", 2),
        ("permute", 1025, "i4", 2),
    ],
)
def test_the_default_unit_takes_its_law_s_cycles(
    op: str, elements: int, dtype: str, cycles: int
) -> None:
    assert lanes_of().cycles(op, elements, dtype) == cycles


def tree_cycles(lanes: int) -> int:
    """Add neighbours until one lane holds all."""
    cycles = 0
    while lanes > 1:
        lanes, cycles = lanes - lanes // 2, cycles + 1
    return cycles


@given(op=ops_of(CostClass.REDUCTION), elements=sizes, lanes=st.integers(1, 700))
def test_a_reduction_is_one_pass_and_a_tree_over_the_lanes(
    op: str, elements: int, lanes: int
) -> None:
    found = lanes_of(lanes, simple=3).cycles(op, elements, "f32")
    assert found == 3 * (dealt_passes(elements, lanes, 1) + tree_cycles(lanes))


def bitonic_stages(size: int) -> list[list[tuple[int, int]]]:
    """The compare-exchanges of a bitonic network for a power of two, stage by stage."""
    stages = []
    run = 2
    while run <= size:
        gap = run // 2
        while gap:
            pairs = [(low, low ^ gap) for low in range(size) if not low & gap]
            stages.append([pair if not pair[0] & run else pair[::-1] for pair in pairs])
            gap //= 2
        run *= 2
    return stages


def sort_with(stages: list[list[tuple[int, int]]], values: list[int]) -> list[int]:
    values = list(values)
    for stage in stages:
        for low, high in stage:
            if values[low] > values[high]:
                values[low], values[high] = values[high], values[low]
    return values


@given(
    op=ops_of(CostClass.SORT),
    values=st.lists(st.integers(-99, 99), min_size=2, max_size=150),
    lanes=st.integers(1, 64),
    is_wide=st.booleans(),
)
def test_a_sort_costs_the_stages_of_a_network_that_sorts(
    op: str, values: list[int], lanes: int, is_wide: bool
) -> None:
    padded = values + [100] * ((1 << (len(values) - 1).bit_length()) - len(values))
    stages = bitonic_stages(len(padded))
    assert sort_with(stages, padded) == sorted(padded)
    each = 2 if is_wide else 1
    expected = sum(dealt_passes(len(stage), lanes, each) for stage in stages)
    dtype = "i64" if is_wide else "i32"
    assert lanes_of(lanes, simple=2).cycles(op, len(values), dtype) == 2 * expected


@given(power=st.integers(1, 12))
def test_a_network_has_the_stated_number_of_compare_exchanges(power: int) -> None:
    size = 2**power
    assert 4 * lanes_of(1).cycles("sort", size, "f32") == size * power * (power + 1)


@given(
    op=ops_of(CostClass.MOVE),
    elements=sizes,
    dtype=dtypes,
    read=st.integers(1, 10**6),
    write=st.integers(1, 10**6),
    hz=st.integers(10**6, 10**10),
)
def test_a_move_lasts_until_the_slower_port_has_passed_its_last_byte(
    op: str, elements: int, dtype: str, read: int, write: int, hz: int
) -> None:
    tcm = TcmSpec(read_bytes_per_us=read, write_bytes_per_us=write)
    cycles = VectorLanes("pe0.vector", VectorSpec(hz=hz), tcm).cycles(op, elements, dtype)
    half_bytes = elements * DTYPE_BITS[dtype] // 4
    num_bytes = half_bytes // 2 + half_bytes % 2
    bytes_per_s = min(read, write) * 10**6
    assert (cycles - 1) * bytes_per_s < num_bytes * hz <= cycles * bytes_per_s


def test_what_has_no_law_is_refused() -> None:
    with pytest.raises(RegistryError, match=r"pe0\.vector: found op 'adds', .*did you mean 'add'"):
        lanes_of().cycles("adds", 1, "f32")
    with pytest.raises(RegistryError, match=r"pe0\.vector: found dtype 'f31', .*did you mean 'f3"):
        lanes_of().cycles("add", 1, "f31")
    with pytest.raises(RegistryError, match=r"pe0\.vector: found dtype 'f31'"):
        lanes_of().cycles("trans", 1, "f31")
    with pytest.raises(UnitError, match=r"pe0\.vector: found elements = 0"):
        lanes_of().cycles("add", 0, "f32")
