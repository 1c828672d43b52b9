from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import AddressError, PageFaultError, ProgramError, RegistryError, SpecError
from tilewright.interop.kernbench.address import PeMmu, PhysAddr
from tilewright.interop.kernbench.names import REFUSED
from tilewright.machine import build_machine, parse_machine
from tilewright.machine.address import AddressLayout, SubUnit
from tilewright.machine.coords import CubeCoord, PeCoord

VA = 0x1_0000_0000


def test_bytes_of_a_range_translate_and_no_others() -> None:
    mmu = PeMmu()
    mmu.map(VA, 0x5000, 100)
    mmu.map(VA + 100, 0x9000, 28)
    assert [mmu.translate(VA + at) for at in (0, 99, 100, 127)] == [0x5000, 0x5063, 0x9000, 0x901B]
    with pytest.raises(AddressError, match="bytes that are mapped"):
        mmu.translate(VA + 128)
    with pytest.raises(PageFaultError, match="not mapped"):
        mmu.translate(0x5000)  # a physical address is not taken for itself


def test_a_range_is_mapped_once_and_unmapped_as_it_was_mapped() -> None:
    mmu = PeMmu(page_size=65_536)
    mmu.map(VA, 0, 64)
    with pytest.raises(RegistryError, match="bytes that are free"):
        mmu.map(VA + 63, 4096, 8)
    with pytest.raises(RegistryError, match="a range as it was mapped"):
        mmu.unmap(VA, 32)
    mmu.unmap(VA, 64)
    with pytest.raises(PageFaultError):
        mmu.translate(VA)


@pytest.mark.parametrize("name", list(REFUSED["policy.routing.router"].values()))
def test_names_of_the_router_say_that_they_are_refused(name: type) -> None:
    with pytest.raises(ProgramError, match=rf"routing\.router\.{name.__name__}.*remove it"):
        name("graph")


PRESETS = ("ahbm", "ahbm-small", "ahbm-6sip", "ahbm-8sip", "hbm3", "crossbar-chip")
HBM_SLICE = 6 << 30


@cache
def layout(preset: str) -> AddressLayout:
    return build_machine(parse_machine(preset)).addresses


def pes(addresses: AddressLayout) -> st.SearchStrategy[PeCoord]:
    counts = (addresses.num_sips, addresses.num_cubes, addresses.num_pes)
    return st.builds(PeCoord, *(st.integers(0, count - 1) for count in counts))


@pytest.mark.parametrize("preset", PRESETS)
@given(data=st.data())
def test_an_address_is_the_machines_address_of_the_same_byte(
    preset: str, data: st.DataObject
) -> None:
    addresses = layout(preset)
    pe = data.draw(pes(addresses))
    where = pe.sip, pe.cube

    def offset(unit: SubUnit) -> int:
        return data.draw(st.integers(0, addresses.size_of(unit) - 1))

    hbm, tcm, sram = (offset(unit) for unit in (SubUnit.HBM, SubUnit.TCM, SubUnit.SRAM))
    found = {
        PhysAddr.pe_hbm_addr(*where, pe.pe, hbm, addresses.slice_bytes): addresses.hbm(pe, hbm),
        PhysAddr.pe_tcm_addr(*where, pe.pe, tcm, addresses.num_pes): addresses.tcm(pe, tcm),
        PhysAddr.cube_sram_addr(*where, sram): addresses.sram(CubeCoord(*where), sram),
    }
    assert [address.encode() for address in found] == [ours.value for ours in found.values()]
    assert [PhysAddr.decode(ours.value) for ours in found.values()] == list(found)


@given(sip=st.integers(0, 15), die=st.integers(0, 20), offset=st.integers(0, 2**38 - 1))
def test_the_fields_are_bits_from_the_highest_on(sip: int, die: int, offset: int) -> None:
    address = PhysAddr(sip, die, offset)
    assert address.encode() == sip * 2**47 + die * 2**42 + offset
    assert PhysAddr.decode(address.encode()) == address
    assert hash(PhysAddr(sip, die, offset)) == hash(address)


def test_a_rack_may_stand_before_the_other_arguments() -> None:
    named = {"sip_id": 1, "cube_id": 3, "pe_id": 5, "pe_local_hbm_offset": 256}
    wanted = PhysAddr(1, 3, 5 * HBM_SLICE + 256)
    assert PhysAddr.pe_hbm_addr(1, 3, 5, 256, HBM_SLICE) == wanted
    assert PhysAddr.pe_hbm_addr(0, 1, 3, 5, 256, HBM_SLICE) == wanted
    assert PhysAddr.pe_hbm_addr(**named, slice_size_bytes=HBM_SLICE) == wanted
    assert PhysAddr.pe_hbm_addr(rack_id=0, **named, slice_size_bytes=HBM_SLICE) == wanted
    assert PhysAddr.cube_sram_addr(0, 1, 3, 64) == PhysAddr.cube_sram_addr(1, 3, 64)
    with pytest.raises(SpecError, match=r"rack_id: found 1, expected an int in 0\.\.0;"):
        PhysAddr.pe_hbm_addr(rack_id=1, **named, slice_size_bytes=HBM_SLICE)
    with pytest.raises(SpecError, match="rack_id: found 2"):
        PhysAddr.cube_sram_addr(2, 1, 3, 64)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ((16, 0, 0), "sip_id: found 16, "),
        ((-1, 0, 0), "sip_id: found -1"),
        ((0, 21, 0), "die_id: found 21"),
        ((0, 0, 2**38), "local_offset"),
        ((0, 16, 2**40), "local_offset"),
        ((0, 0, 1.5), "local_offset: found 1.5"),
        ((True, 0, 0), "sip_id: found True"),
    ],
)
def test_a_value_outside_of_its_field_is_refused(fields: tuple[int, int, int], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        PhysAddr(*fields)


@pytest.mark.parametrize("value", [-1, 2**51, 21 << 42, 2**38, (16 << 42) + 2**40, 0.5])
def test_an_integer_that_is_no_address_is_refused(value: int) -> None:
    with pytest.raises(SpecError, match="PhysAddr"):
        PhysAddr.decode(value)


def test_a_byte_past_a_slice_or_a_window_is_refused() -> None:
    with pytest.raises(SpecError, match="pe_local_hbm_offset"):
        PhysAddr.pe_hbm_addr(0, 0, 0, HBM_SLICE, HBM_SLICE)
    with pytest.raises(SpecError, match="pe_id: found 21"):
        PhysAddr.pe_hbm_addr(0, 0, 21, 0, HBM_SLICE)  # 22 slices of 6 GiB are above 128 GiB
    with pytest.raises(SpecError, match="slice_size_bytes: found 0"):
        PhysAddr.pe_hbm_addr(0, 0, 0, 0, 0)
    with pytest.raises(SpecError, match="sram_offset"):
        PhysAddr.cube_sram_addr(0, 0, 2**35)
    with pytest.raises(SpecError, match="cube_id: found 16"):
        PhysAddr.cube_sram_addr(0, 16, 0)
    with pytest.raises(SpecError, match="missing a required argument: 'sram_offset'"):
        PhysAddr.cube_sram_addr(0, 0)
