"""The memories of a device: every byte that programs can address has one place, and back."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import DeviceError
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.machine.address import Location, SubUnit
from tilewright.machine.coords import CubeCoord, PeCoord, SipCoord
from tilewright.memory import MemoryKind, MemoryPlace
from tilewright.runtime.device import DeviceMemory

PE = PeCoord(1, 2, 3)


@cache
def machine() -> Machine:
    return build_machine(parse_machine("ahbm-small", ("sip.count=2",)))


@cache
def memory() -> DeviceMemory:
    return DeviceMemory(machine())


@given(
    kind=st.sampled_from(MemoryKind),
    pe=st.sampled_from(list(machine().grid.pes())),
    share=st.integers(0, 1000),
)
def test_a_byte_is_found_where_its_address_says(kind: MemoryKind, pe: PeCoord, share: int) -> None:
    place = MemoryPlace.of(kind, pe)
    offset = (memory().capacity_bytes(place) - 1) * share // 1000
    physical = memory().physical(place, offset)
    assert memory().place_of(physical) == (place, offset)
    number, inside, num_bytes = memory().locate(physical)
    assert (memory().memories[number].place, inside) == (place, offset)
    assert inside + num_bytes == memory().capacity_bytes(place)
    again = memory().locate(physical)  # found before, and not looked up again
    assert again == (number, inside, num_bytes)


def test_the_pes_of_a_cube_have_one_sram_and_a_tcm_and_a_slice_each() -> None:
    beside = PeCoord(PE.sip, PE.cube, 0)
    same = [MemoryPlace.of(kind, PE) == MemoryPlace.of(kind, beside) for kind in MemoryKind]
    assert dict(zip(MemoryKind, same, strict=True)) == {
        MemoryKind.HBM: False,
        MemoryKind.SRAM: True,
        MemoryKind.TCM: False,
    }
    names = [str(MemoryPlace.of(kind, PE)) for kind in MemoryKind]
    assert names == ["sip1.cube2.pe3.hbm", "sip1.cube2.sram", "sip1.cube2.pe3.tcm"]


@pytest.mark.parametrize(
    ("unit", "where"),
    [
        (SubUnit.PE_CPU, PE),
        (SubUnit.M_CPU, CubeCoord(1, 2)),
        (SubUnit.IO_CPU, SipCoord(0)),
    ],
)
def test_a_byte_of_a_processor_is_refused(
    unit: SubUnit, where: PeCoord | CubeCoord | SipCoord
) -> None:
    physical = machine().addresses.encode(Location(unit, where, 64)).value
    words = f"physical {physical:#x} in {unit.value}, expected an address in HBM, SRAM or TCM"
    with pytest.raises(DeviceError, match=words):
        memory().locate(physical)


def test_tensors_get_the_tcm_behind_what_is_reserved() -> None:
    tcm = machine().spec.pe.tcm
    allocator = memory().allocator(MemoryPlace(MemoryKind.TCM, PE))
    assert allocator.capacity_bytes == tcm.capacity_bytes - tcm.reserved_bytes
    offset = allocator.allocate(1, requester="tensor 'a'")
    assert offset == tcm.reserved_bytes
    assert memory().tcm_used_bytes(PE) == 1
    assert memory().tcm_used_bytes(PeCoord(0, 0, 0)) == 0
    allocator.free(offset, 1)
    assert memory().tcm_used_bytes(PE) == 0
