"""Rooflines are what the spec's rates give on paper."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.benches.programs.bound import Work, bound_of, stream_ps
from tilewright.errors import BenchError
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.machine.totals import slice_bytes_per_us, usable_share
from tilewright.units import PS_PER_US

MACHINE = build_machine(parse_machine("ahbm-small"))
SIMPLE = build_machine(parse_machine("ahbm-small", ("cube.hbm.model=simple",)))


def test_a_product_is_bound_by_the_peak_of_its_dtype() -> None:
    flop = 2 * 256 * 256 * 256
    bound = bound_of(MACHINE, Work(num_pes=2, flop={"f16": flop}))
    assert (bound.resource, bound.total_ps) == ("GEMM unit", flop * 1000 // 8192 // 2)
    wide = bound_of(MACHINE, Work(num_pes=2, flop={"f32": flop}))
    assert wide.total_ps == 4 * bound.total_ps


def test_elements_count_by_the_cycles_of_their_op() -> None:
    work = Work(num_pes=1, elements={"exp": 512, "add": 1024})
    assert bound_of(MACHINE, work).parts["vector unit"] == 6_000


def test_reads_and_writes_share_the_memory_but_not_a_link() -> None:
    work = Work(num_pes=1, read_bytes=256_000, written_bytes=128_000)
    bound = bound_of(MACHINE, work)
    assert bound.parts == {"HBM": 1_500_000, "DMA link": 1_000_000}
    assert bound.resource == "HBM"


def test_more_pes_take_less_time() -> None:
    one, four = (bound_of(MACHINE, Work(num_pes=n, read_bytes=2**20)) for n in (1, 4))
    assert four.total_ps < one.total_ps / 3


def test_a_byte_takes_time_however_many_pes_share_it() -> None:
    assert bound_of(MACHINE, Work(num_pes=128, read_bytes=4)).parts == {"DMA link": 1}


def test_work_without_a_known_rate_is_refused() -> None:
    with pytest.raises(BenchError, match="no resource with a known rate"):
        bound_of(MACHINE, Work(num_pes=1))


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
    ("machine", "time_ps"), [(MACHINE, 4_000_000 + 571_000), (SIMPLE, 4_000_000)]
)
def test_a_refresh_costs_what_it_closes(machine: Machine, time_ps: int) -> None:
    assert stream_ps(machine, 1_024_000) == time_ps
