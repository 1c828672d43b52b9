"""Busy shares of links by buckets of time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright.analysis.trace.links import BusyBuckets

Hold = tuple[int, int, int]  # server, start, length
BUCKET_PS = 10


def add(buckets: BusyBuckets, holds: list[Hold]) -> None:
    servers, starts, lengths = np.array(holds, np.int64).reshape(-1, 3).T
    buckets.add(servers, starts, starts + lengths)


@given(
    holds=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 200), st.integers(1, 50)), max_size=20
    ),
    cut_ps=st.integers(0, 260),
)
def test_the_values_add_up_to_the_time_that_servers_were_held(
    holds: list[Hold], cut_ps: int
) -> None:
    """However the holds are handed over: those that start later come after a first take."""
    buckets = BusyBuckets(bucket_ps=BUCKET_PS)
    add(buckets, [hold for hold in holds if hold[1] < cut_ps])
    values = list(buckets.take(cut_ps))
    add(buckets, [hold for hold in holds if hold[1] >= cut_ps])
    values += list(buckets.take())
    for server in range(3):
        told = [(value.at_ps, value.share) for value in values if value.server == server]
        assert told == sorted(told)
        assert len({at_ps for at_ps, _ in told}) == len(told)
        ends = [at_ps for at_ps, _ in told[1:]] + ([told[-1][0]] if told else [])
        held = sum(
            share * (end_ps - at_ps) for (at_ps, share), end_ps in zip(told, ends, strict=True)
        )
        expected = sum(length for each, _, length in holds if each == server)
        assert abs(held - expected) < 1e-6
        assert not told or told[-1][1] == 0.0
