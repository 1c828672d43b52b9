import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright.machine.deadlock.cycle import EdgeArray, find_cycle

NUM_CHANNELS = 8
channels = st.integers(0, NUM_CHANNELS - 1)


def edge_array(edges: set[tuple[int, int]]) -> EdgeArray:
    return np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)


def has_cycle(edges: set[tuple[int, int]]) -> bool:
    """By the definition: someone reaches itself."""
    reached = set(edges)
    for _ in range(NUM_CHANNELS):
        reached |= {
            (one, two) for one, middle in reached for start, two in edges if start == middle
        }
    return any(one == other for one, other in reached)


@given(st.sets(st.tuples(channels, channels), max_size=14))
def test_a_cycle_is_found_exactly_when_there_is_one(edges: set[tuple[int, int]]) -> None:
    cycle = find_cycle(edge_array(edges), NUM_CHANNELS)
    assert bool(cycle) == has_cycle(edges)
    assert all(pair in edges for pair in zip(cycle, cycle[1:] + cycle[:1], strict=True))
    assert len(set(cycle)) == len(cycle)


@given(st.sets(st.tuples(channels, channels), max_size=20))
def test_a_graph_that_only_goes_up_has_no_cycle(edges: set[tuple[int, int]]) -> None:
    upward = {(one, other) for one, other in edges if one < other}
    assert find_cycle(edge_array(upward), NUM_CHANNELS) == []
