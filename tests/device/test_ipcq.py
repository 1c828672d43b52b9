"""Rings: fragments, room, and the steps that a message is made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.build import build_device
from tilewright.device.ipcq import RingKind, RingPool, RingSpec, check_room
from tilewright.device.pe import build_pe
from tilewright.engine.core import EXCHANGE, HOLD, TRANSFER
from tilewright.errors import DeviceError
from tilewright.machine import PeCoord, build_machine, parse_machine


@given(st.integers(1, 10**5), st.integers(1, 5000))
def test_fragments_fill_slots_and_add_up_to_the_message(num_bytes: int, slot_bytes: int) -> None:
    sizes = RingSpec(slot_bytes=slot_bytes).fragments(num_bytes)
    assert sum(sizes) == num_bytes
    assert set(sizes[:-1]) <= {slot_bytes}
    assert 0 < sizes[-1] <= slot_bytes


@pytest.mark.parametrize("field", ["slots", "slot_bytes", "token_bytes"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_a_figure_that_cannot_be_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(DeviceError, match=rf"ring: found {field}={value}"):
        RingSpec(**{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", RingKind)
def test_every_step_of_a_ring_names_its_fragment(kind: RingKind) -> None:
    device = build_device(build_machine(parse_machine("ahbm")))
    sender, receiver = (build_pe(device, PeCoord(0, 0, pe)) for pe in (0, 5))
    spec = RingSpec(kind, slots=2, slot_bytes=64)
    ring = RingPool(device).build("ring", "ring", spec, sender, receiver, address=4096)
    assert device.engine.signal_value(ring.credits) == 2
    sends, receives = ring.send_steps(3, [64, 10]), ring.receive_steps(3, [64, 10])
    controls, data = sends[::3], sends[1::3]
    assert [step[5] for step in controls] == [
        ((ring.credits, 4), (ring.sent, 3)),
        ((ring.credits, 5), (ring.sent, 4)),
    ]
    assert [step[2] for step in data] == [64, 10]
    assert [step[6] for step in sends[2::3]] == [((ring.arrived, 1),)] * 2
    reads, credits = receives[::2], receives[1::2]
    assert [step[5] for step in reads] == [((ring.arrived, 4),), ((ring.arrived, 5),)]
    assert [step[6] for step in credits] == [((ring.credits, 1),)] * 2
    if kind is RingKind.TCM:
        assert {step[0] for step in data} == {TRANSFER}
        assert {step[0] for step in reads} == {HOLD}
    else:
        assert {step[0] for step in (*data, *reads)} == {EXCHANGE}
        assert [step[3] for step in data] == [step[3] for step in reads] == [4096 + 64, 4096]


@pytest.mark.parametrize(
    ("spec", "num_rings", "address", "place"),
    [
        (RingSpec(slots=64, slot_bytes=2**16), 2, 0, "the reserved part of the TCM: 4194304"),
        (RingSpec(RingKind.SRAM), 1, 32 * 2**20 - 4096, "the SRAM: 33554432"),
        (RingSpec(RingKind.HBM), 1, 6 * 2**30, "the slice: 6442450944"),
        (RingSpec(RingKind.HBM), 1, -1, "the slice: 6442450944"),
    ],
)
def test_rings_without_room_are_refused(
    spec: RingSpec, num_rings: int, address: int, place: str
) -> None:
    device = build_device(build_machine(parse_machine("ahbm")))
    with pytest.raises(DeviceError, match=f"expected room in {place}"):
        check_room(device, spec, "ring", num_rings, address)
