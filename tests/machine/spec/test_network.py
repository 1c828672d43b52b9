from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.machine.spec import PcieSpec
from tilewright.machine.spec.network import pcie_bytes_per_us, pcie_payload_rate, pcie_raw_rate
from tilewright.units import PS_PER_US, flit_ps

links = st.builds(
    PcieSpec,
    generation=st.integers(1, 5),
    lanes=st.sampled_from((1, 2, 4, 8, 16)),
    payload_bytes=st.sampled_from((128, 256, 512, 1024)),
    overhead_bytes=st.integers(0, 40),
)


@pytest.mark.parametrize(
    ("generation", "gigabytes"),
    [(1, "4.000"), (2, "8.000"), (3, "15.754"), (4, "31.508"), (5, "63.015")],
)
def test_raw_rates_are_those_of_li1(generation: int, gigabytes: str) -> None:
    rate = pcie_raw_rate(PcieSpec(generation=generation))
    assert f"{float(rate / 1000):.3f}" == gigabytes


@pytest.mark.parametrize(
    ("payload", "overhead", "gigabytes"),
    [
        *((128, 20, "54.50"), (128, 24, "53.07"), (128, 28, "51.70")),
        *((256, 20, "58.45"), (256, 24, "57.61"), (256, 28, "56.80")),
        *((512, 20, "60.65"), (512, 24, "60.19"), (512, 28, "59.75")),
    ],
)
def test_payload_rates_are_those_of_li2(payload: int, overhead: int, gigabytes: str) -> None:
    rate = pcie_payload_rate(PcieSpec(payload_bytes=payload, overhead_bytes=overhead))
    assert f"{float(rate / 1000):.2f}" == gigabytes


def exact_flit_ps(pcie: PcieSpec, flit_bytes: int) -> int:
    framed = Fraction(flit_bytes * (pcie.payload_bytes + pcie.overhead_bytes), pcie.payload_bytes)
    return -(-framed * PS_PER_US // pcie_raw_rate(pcie))


@given(pcie=links, flit_bytes=st.sampled_from((32, 64, 128, 256)))
def test_the_integer_rate_is_never_early_and_late_by_less_than_one_byte_per_us(
    pcie: PcieSpec, flit_bytes: int
) -> None:
    rate = pcie_bytes_per_us(pcie, flit_bytes=flit_bytes)
    wanted_ps = exact_flit_ps(pcie, flit_bytes)
    found_ps = flit_ps(flit_bytes=flit_bytes, bytes_per_us=rate)
    assert wanted_ps <= found_ps <= wanted_ps + wanted_ps // (rate - 1) + 1


@pytest.mark.parametrize("generation", [3, 4, 5])
@pytest.mark.parametrize("flit_bytes", [32, 64, 128])
@pytest.mark.parametrize("overhead", [20, 24, 28])
def test_the_flit_time_of_a_wide_link_is_exact(
    generation: int, flit_bytes: int, overhead: int
) -> None:
    pcie = PcieSpec(generation=generation, overhead_bytes=overhead)
    rate = pcie_bytes_per_us(pcie, flit_bytes=flit_bytes)
    assert flit_ps(flit_bytes=flit_bytes, bytes_per_us=rate) == exact_flit_ps(pcie, flit_bytes)
