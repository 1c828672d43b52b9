from fractions import Fraction
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.pcie import PcieFraming, lane_rate
from tilewright.errors import UnitError
from tilewright.machine.spec import PcieSpec

Lanes = Literal[1, 2, 4, 8, 16]


def framing_of(payload: int = 256, overhead: int = 24, generation: int = 5) -> PcieFraming:
    spec = PcieSpec(payload_bytes=payload, overhead_bytes=overhead, generation=generation)
    return PcieFraming(spec)


def in_gb_per_s(rate: Fraction, digits: int) -> Fraction:
    return round(rate / 1_000, digits)


@pytest.mark.parametrize(
    ("generation", "gb_per_s"),
    [(1, "4.0"), (2, "8.0"), (3, "15.754"), (4, "31.508"), (5, "63.015")],
)
def test_a_link_of_16_lanes_has_the_raw_rate_of_its_generation(
    generation: int, gb_per_s: str
) -> None:
    assert in_gb_per_s(framing_of(generation=generation).raw_rate, 3) == Fraction(gb_per_s)


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
def test_framing_leaves_the_stated_payload_rate(payload: int, overhead: int, gb_per_s: str) -> None:
    assert in_gb_per_s(framing_of(payload, overhead).payload_rate, 2) == Fraction(gb_per_s)


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_the_rate_grows_with_the_lanes(lanes: Lanes) -> None:
    narrow = PcieFraming(PcieSpec(lanes=lanes))
    assert framing_of().raw_rate == narrow.raw_rate * Fraction(16, lanes)


@pytest.mark.parametrize(("lanes", "gb_per_s"), [(16, 64), (64, 256)])
def test_a_ucie_module_at_32_gt_per_s_has_the_stated_raw_rate(lanes: int, gb_per_s: int) -> None:
    assert lane_rate(32_000, lanes) == gb_per_s * 1_000


@given(num_bytes=st.integers(0, 5_000), payload=st.integers(1, 600), overhead=st.integers(0, 60))
def test_every_packet_of_a_copy_pays_its_overhead(
    num_bytes: int, payload: int, overhead: int
) -> None:
    on_the_wire, left = 0, num_bytes
    while left > 0:
        on_the_wire += min(left, payload) + overhead
        left -= payload
    assert framing_of(payload, overhead).wire_bytes(num_bytes) == on_the_wire


@given(packets=st.integers(1, 10**6))
def test_full_packets_go_at_the_payload_rate_exactly(packets: int) -> None:
    framing = framing_of()
    num_bytes = packets * 256
    assert framing.wire_bytes(num_bytes) / framing.raw_rate == num_bytes / framing.payload_rate


@pytest.mark.parametrize("num_bytes", [-1, 1.5, True])
def test_a_copy_of_no_size_is_refused(num_bytes: int) -> None:
    with pytest.raises(UnitError, match=f"found num_bytes = {num_bytes}"):
        framing_of().wire_bytes(num_bytes)
