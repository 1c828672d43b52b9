"""The checks of a probe: each fails on the row that breaks it, and on no other."""

from typing import Any

import pytest

from tilewright.programs.probe.check import failures_of
from tilewright.records import Breakdown, ProbeRow

NOTHING = {
    "overhead": 0,
    "wire": 0,
    "serialisation": 0,
    "queueing": 0,
    "memory": 0,
    "refresh": 0,
}


def row_of(case: str, num_bytes: int, latency_ps: int, **more: Any) -> ProbeRow:
    refresh_ps = more.pop("refresh_ps", 0)
    parts = NOTHING | {"memory": latency_ps - refresh_ps, "refresh": refresh_ps}
    figures: dict[str, Any] = {
        "case": case,
        "bytes": num_bytes,
        "issuers": 1,
        "latency_ps": latency_ps,
        "bound_ps": 10,
        "ratio": latency_ps / 10,
        "bandwidth_gbs": 1.0,
        "bound_gbs": 1.0,
        "refresh_limited_gbs": 1.0,
        "utilisation": 0.5,
        "bottleneck": "a -> b",
        "breakdown_ps": Breakdown(**parts),
    }
    return ProbeRow(**(figures | more))


GOOD = (
    row_of("pe_local", 256, 20),
    row_of("pe_local", 512, 20),
    row_of("pe_same_cube", 256, 20),
    row_of("pe_next_cube", 256, 30),
    row_of("pe_far_cube", 256, 40),
)


def test_rows_in_order_fail_no_check() -> None:
    assert failures_of(GOOD) == ()


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (row_of("a", 1, 9), "a at 1 bytes: 9 ps is below its bound of 10 ps"),
        (
            row_of("a", 1, 20, utilisation=1.25),
            "a at 1 bytes: a -> b is used for 1.250 of the time",
        ),
        (
            row_of("a", 1, 20, breakdown_ps=Breakdown(**NOTHING | {"wire": 19})),
            "a at 1 bytes: its parts are 19 ps and its latency 20 ps",
        ),
        (
            row_of("pe_local", 1024, 19),
            "pe_local at 1024 bytes takes 19 ps, less than pe_local at 512 bytes",
        ),
        (
            row_of("pe_local", 128, 20),
            None,
        ),
        (
            row_of("pe_other_sip", 256, 19),
            "pe_local at 256 bytes takes 20 ps, more than pe_other_sip at 256 bytes",
        ),
    ],
)
def test_one_broken_row_is_the_one_that_is_named(row: ProbeRow, sentence: str | None) -> None:
    assert failures_of((*GOOD, row)) == (() if sentence is None else (sentence,))


def test_a_row_that_met_refresh_may_be_slower_than_one_farther_away() -> None:
    far = row_of("pe_next_cube", 256, 30)
    assert failures_of((row_of("pe_local", 256, 40, refresh_ps=5), far)) == ()
    assert len(failures_of((row_of("pe_local", 256, 40), far))) == 1


def test_several_issuers_may_help_each_other() -> None:
    crowd = [row_of("hot_2", size, time_ps, issuers=2) for size, time_ps in ((1, 20), (2, 15))]
    assert failures_of(crowd) == ()
