from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.pcie import PcieFraming
from tilewright.errors import UnitError
from tilewright.machine.spec import PcieSpec
from tilewright.machine.spec.network import pcie_payload_rate, pcie_raw_rate

MIB = 2**20


def framing_of(payload: int = 256, overhead: int = 24, generation: int = 5) -> PcieFraming:
    spec = PcieSpec(payload_bytes=payload, overhead_bytes=overhead, generation=generation)
    return PcieFraming("pcie_ep", spec)


def gb_per_s_of(framing: PcieFraming, digits: int) -> Fraction:
    """The rate at which a MiB is carried."""
    return round(Fraction(MIB * 1_000, framing.wire_ps(MIB)), digits)


@pytest.mark.parametrize(
    ("generation", "gb_per_s"),
    [(1, "4.0"), (2, "8.0"), (3, "15.754"), (4, "31.508"), (5, "63.015")],
)
def test_without_overhead_a_copy_goes_at_the_raw_rate_of_16_lanes(
    generation: int, gb_per_s: str
) -> None:
    assert gb_per_s_of(framing_of(overhead=0, generation=generation), 3) == Fraction(gb_per_s)


PAYLOAD_RATES = [
    (128, 20, "54.50"),
    (128, 24, "53.07"),
    (128, 28, "51.70"),
    (256, 20, "58.45"),
    (256, 24, "57.61"),
    (256, 28, "56.80"),
    (512, 20, "60.65"),
    (512, 24, "60.19"),
    (512, 28, "59.75"),
]


@pytest.mark.parametrize(("payload", "overhead", "gb_per_s"), PAYLOAD_RATES)
def test_a_copy_of_a_mib_goes_at_the_stated_payload_rate(
    payload: int, overhead: int, gb_per_s: str
) -> None:
    assert gb_per_s_of(framing_of(payload, overhead), 2) == Fraction(gb_per_s)


@given(num_bytes=st.integers(1, 5_000), payload=st.integers(1, 600), overhead=st.integers(0, 60))
def test_every_packet_of_a_copy_pays_its_overhead(
    num_bytes: int, payload: int, overhead: int
) -> None:
    on_the_wire, left = 0, num_bytes
    while left > 0:
        on_the_wire += min(left, payload) + overhead
        left -= payload
    assert framing_of(payload, overhead).wire_bytes(num_bytes) == on_the_wire


@given(num_bytes=st.integers(1, 10**9), generation=st.integers(1, 5))
def test_time_on_the_wire_is_rounded_up_once(num_bytes: int, generation: int) -> None:
    framing = framing_of(generation=generation)
    exact_ps = framing.wire_bytes(num_bytes) * 10**6 / pcie_raw_rate(framing.spec)
    assert 0 <= framing.wire_ps(num_bytes) - exact_ps < 1


@given(num_packets=st.integers(1, 10**6))
def test_full_packets_go_at_the_payload_rate_of_the_machine_s_link(num_packets: int) -> None:
    framing = framing_of()
    num_bytes = num_packets * 256
    late_ps = framing.wire_ps(num_bytes) - num_bytes * 10**6 / pcie_payload_rate(framing.spec)
    assert 0 <= late_ps < 1


@pytest.mark.parametrize("num_bytes", [0, -1, 1.5, True])
def test_a_copy_of_no_size_is_refused(num_bytes: int) -> None:
    with pytest.raises(UnitError, match=f"pcie_ep: found num_bytes = {num_bytes}"):
        framing_of().wire_bytes(num_bytes)
