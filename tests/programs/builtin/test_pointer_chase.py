"""Latencies near and far."""

from itertools import pairwise
from typing import Any

import pytest

from tests.programs.small import run_small
from tilewright.errors import BenchError
from tilewright.host import RuntimeContext
from tilewright.programs import PROGRAMS


def test_a_slice_that_is_farther_away_takes_longer() -> None:
    outcomes = [
        run_small("pointer_chase", where=where, hops=200, data=False)
        for where in ("local", "same_cube", "next_cube", "far_cube")
    ]
    assert all(outcome.values_ok for outcome in outcomes)
    assert all(one.latency_ps < other.latency_ps for one, other in pairwise(outcomes))
    assert all(one.bound.total_ps < other.bound.total_ps for one, other in pairwise(outcomes))


def test_a_chain_in_another_sip_is_followed_there() -> None:
    with RuntimeContext("ahbm") as torch:
        outcome = PROGRAMS["pointer_chase"].run(torch, hops=8, where="other_sip")
    assert outcome.values_ok is True
    assert outcome.bound.total_ps <= outcome.latency_ps


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"where": "other_sip"}, "where=other_sip, but it has one SIP"),
        ({"hops": 1024}, "hops=1024, expected 1 to 1023"),
        ({"hops": 0}, "hops=0"),
    ],
)
def test_a_chain_that_cannot_be_is_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(BenchError, match=message):
        run_small("pointer_chase", **parameters)


def test_a_device_of_one_sip_has_no_other() -> None:
    with (
        RuntimeContext("ahbm", device="sip:1") as torch,
        pytest.raises(BenchError, match="the device has 1 SIP"),
    ):
        PROGRAMS["pointer_chase"].run(torch, where="other_sip")


def test_each_hop_waits_for_the_one_before() -> None:
    short, long = (run_small("pointer_chase", hops=hops, data=False) for hops in (100, 200))
    one, other = (run.launches[0].execution_ps for run in (short, long))
    assert 1.8 < other / one < 2.2
