"""Bounds are what the spec's rates and latencies give on paper."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.totals import slice_bytes_per_us, usable_share
from tilewright.programs.bound import (
    Path,
    Work,
    bound_of,
    latency_of,
    rates_of,
    stream_ps,
    sum_bounds,
)
from tilewright.units import PS_PER_US

MACHINE = build_machine(parse_machine("ahbm-small"))
SIMPLE = build_machine(parse_machine("ahbm-small", ("cube.hbm.model=simple",)))
PATH = Path(pes=(PeCoord(0, 0, 0),))


def test_a_product_takes_the_peak_of_its_dtype() -> None:
    flop = 2 * 256 * 256 * 256
    assert rates_of(MACHINE, Work(num_pes=2, flop={"f16": flop})) == {
        "GEMM unit": flop * 1000 // 8192 // 2
    }
    wide = rates_of(MACHINE, Work(num_pes=2, flop={"f32": flop}))
    assert wide == {"GEMM unit": 4 * flop * 1000 // 8192 // 2}


def test_elements_count_by_the_cycles_of_their_op() -> None:
    work = Work(num_pes=1, elements={"exp": 512, "add": 1024})
    assert rates_of(MACHINE, work)["vector unit"] == 6_000


def test_reads_and_writes_share_the_memory_but_not_a_link() -> None:
    work = Work(num_pes=1, read_bytes=256_000, written_bytes=128_000)
    assert rates_of(MACHINE, work) == {"HBM": 1_500_000, "DMA link": 1_000_000}
    assert bound_of(MACHINE, work, PATH).resource == "HBM"


def test_more_pes_take_less_time() -> None:
    one, four = (rates_of(MACHINE, Work(num_pes=n, read_bytes=2**20)) for n in (1, 4))
    assert four["HBM"] < one["HBM"] / 3


def test_a_byte_takes_time_however_many_pes_share_it() -> None:
    assert rates_of(MACHINE, Work(num_pes=128, read_bytes=4)) == {"DMA link": 1}


def test_each_part_is_work_behind_the_latencies_of_its_resource() -> None:
    work = Work(num_pes=1, read_bytes=256_000, flop={"f16": 8_192_000}, elements={"add": 512})
    bound, latency = bound_of(MACHINE, work, PATH), latency_of(MACHINE, PATH)
    assert bound.parts == {
        "HBM": 1_000_000 + latency.hbm_ps,
        "DMA link": 1_000_000 + latency.link_ps,
        "GEMM unit": 1_000_000 + latency.unit_ps,
        "vector unit": 1_000 + latency.unit_ps,
        "latency": latency.path_ps,
    }
    assert (bound.total_ps, bound.resource) == (bound.parts["GEMM unit"], "GEMM unit")
    assert (bound.latency_ps, bound.rate_ps) == (latency.unit_ps, 1_000_000)


def test_messages_without_bytes_have_no_part() -> None:
    work, latency = Work(num_pes=1, read_bytes=64), latency_of(MACHINE, PATH)
    bound = bound_of(MACHINE, work, PATH, {"messages": (0, 7), "SIP links": (900_000, 7)})
    assert "messages" not in bound.parts
    assert bound.total_ps == bound.parts["SIP links"] == 900_007 + latency.message_ps


def test_work_without_a_known_rate_takes_its_latencies() -> None:
    bound = bound_of(MACHINE, Work(num_pes=1), PATH)
    assert (bound.resource, bound.rate_ps) == ("latency", 0)
    assert bound.total_ps == bound.latency_ps == latency_of(MACHINE, PATH).path_ps


def test_launches_that_follow_one_another_add_up_and_each_has_its_latency() -> None:
    moving = bound_of(MACHINE, Work(num_pes=1, read_bytes=256_000), PATH)
    computing = bound_of(MACHINE, Work(num_pes=1, flop={"f16": 819_200}), PATH)
    both = sum_bounds([moving, computing])
    assert both.parts["HBM"] == moving.parts["HBM"] + computing.parts["latency"]
    assert both.parts["GEMM unit"] == moving.parts["latency"] + computing.parts["GEMM unit"]
    assert both.parts["latency"] == moving.parts["latency"] + computing.parts["latency"]
    assert both.rates == {"HBM": 1_000_000, "DMA link": 1_000_000, "latency": 0, "GEMM unit": 10**5}


@given(num_bytes=st.integers(0, 2**32))
def test_a_stream_is_between_the_nominal_and_the_refresh_limited_rate(num_bytes: int) -> None:
    time_ps = stream_ps(MACHINE, num_bytes)
    nominal_ps = Fraction(num_bytes * PS_PER_US, slice_bytes_per_us(MACHINE.spec))
    assert time_ps is not None
    assert int(nominal_ps) <= time_ps <= nominal_ps / usable_share(MACHINE.spec.cube.hbm)


def test_a_long_stream_comes_to_the_refresh_limited_rate() -> None:
    num_bytes = 2**34
    time_ps = stream_ps(MACHINE, num_bytes)
    assert time_ps is not None
    rate = Fraction(num_bytes * PS_PER_US, time_ps)
    peak = slice_bytes_per_us(MACHINE.spec) * usable_share(MACHINE.spec.cube.hbm)
    assert float(rate / peak) == pytest.approx(1, abs=5e-4)


@pytest.mark.parametrize(
    ("machine", "has_writes", "time_ps"),
    [
        (MACHINE, False, 4_000_000 + 571_000),
        # from read data to write data: RTP - CL - BL, RP, RFC, RCD of a write, CWL
        (MACHINE, True, 4_000_000 + 6_000 - 11_000 + 16_500 + 530_000 + 9_500 + 5_000),
        (SIMPLE, False, 4_000_000),
        (SIMPLE, True, 4_000_000),
    ],
)
def test_a_refresh_costs_what_it_closes(machine: Machine, has_writes: bool, time_ps: int) -> None:
    assert stream_ps(machine, 1_024_000, has_writes=has_writes) == time_ps


def test_a_rate_that_is_no_whole_number_of_bytes_is_not_rounded() -> None:
    """8 channels of 32 bytes in 666 ps; rounded down to bytes a us they would take longer."""
    machine = build_machine(
        parse_machine("ahbm-small", ("cube.hbm.timing.clock_ps=333", "cube.hbm.refresh.kind=none"))
    )
    assert stream_ps(machine, 256 * 10**9) == 666 * 10**9
