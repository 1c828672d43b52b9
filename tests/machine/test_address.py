import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machine.shapes import single_die
from tilewright.errors import SpecError
from tilewright.machine.address import (
    AddressLayout,
    Location,
    PhysicalAddress,
    SubUnit,
    build_address_layout,
)
from tilewright.machine.coords import CubeCoord, PeCoord, SipCoord
from tilewright.machine.spec import (
    AddressSpec,
    CrossbarSpec,
    CubeSpec,
    MachineSpec,
    PeSpec,
    SipSpec,
    SramSpec,
    TcmSpec,
)

GIB = 2**30
AHBM = build_address_layout(MachineSpec())
LAYOUTS = (
    AHBM,
    build_address_layout(single_die(6, CrossbarSpec())),
    build_address_layout(
        MachineSpec(
            sip=SipSpec(count=30, columns=5, rows=6),
            address=AddressSpec(sip_bits=6, die_bits=6, offset_bits=40),
        )
    ),
)


@st.composite
def located(draw: st.DrawFn) -> tuple[AddressLayout, Location]:
    layout = draw(st.sampled_from(LAYOUTS))
    units = [unit for unit in SubUnit if layout.num_io or unit is not SubUnit.IO_CPU]
    unit = draw(st.sampled_from(units))
    sip = draw(st.integers(0, layout.num_sips - 1))
    cube = draw(st.integers(0, layout.num_cubes - 1))
    where: SipCoord | CubeCoord | PeCoord = CubeCoord(sip, cube)
    if unit is SubUnit.IO_CPU:
        where = SipCoord(sip)
    elif unit in (SubUnit.HBM, SubUnit.TCM, SubUnit.PE_CPU):
        where = PeCoord(sip, cube, draw(st.integers(0, layout.num_pes - 1)))
    size = layout.size_of(unit)
    offset = draw(st.one_of(st.sampled_from((0, size - 1)), st.integers(0, size - 1)))
    return layout, Location(unit, where, offset)


@given(located())
def test_decoding_an_encoded_location_gives_it_back(
    case: tuple[AddressLayout, Location],
) -> None:
    layout, location = case
    address = layout.encode(location)
    assert layout.decode(address) == location
    assert address.value < 2**layout.num_bits


def decoded(layout: AddressLayout, address: PhysicalAddress) -> Location | None:
    try:
        return layout.decode(address)
    except SpecError:
        return None


@given(layout=st.sampled_from(LAYOUTS), data=st.data())
def test_any_address_decodes_to_what_encodes_to_it_or_is_refused(
    layout: AddressLayout, data: st.DataObject
) -> None:
    near = [layout.base_of(unit, pe) for unit in SubUnit for pe in range(layout.num_pes)]
    offset = data.draw(st.sampled_from(near)) + data.draw(st.integers(-2, 2**27))
    die = data.draw(st.integers(0, 2**layout.die_bits - 1))
    sip = data.draw(st.integers(0, layout.num_sips - 1))
    value = ((sip << layout.die_bits | die) << layout.offset_bits) + max(0, offset)
    location = decoded(layout, PhysicalAddress(value))
    assert location is None or layout.encode(location).value == value


def test_the_default_fields_are_those_of_the_reference() -> None:
    assert (AHBM.num_bits, AHBM.first_io_die, AHBM.num_io_dies) == (51, 16, 5)
    assert AHBM.slice_bytes == 6 * GIB
    address = AHBM.hbm(PeCoord(1, 3, 5), 256)
    assert address.value == (1 << 47) + (3 << 42) + 5 * 6 * GIB + 256


def test_slices_of_a_cube_lie_one_behind_the_other() -> None:
    slices = [AHBM.hbm(PeCoord(0, 2, pe), 0).value for pe in range(8)]
    assert slices == [(2 << 42) + pe * 6 * GIB for pe in range(8)]
    assert AHBM.decode(PhysicalAddress(slices[0] + 13 * GIB)).where == PeCoord(0, 2, 2)


def test_windows_of_a_cube_are_where_the_documentation_says() -> None:
    cube = CubeCoord(0, 0)
    assert AHBM.tcm(PeCoord(0, 0, 0), 0).value == 128 * GIB
    assert AHBM.tcm(PeCoord(0, 0, 1), 0).value == 136 * GIB
    assert AHBM.sram(cube, 0).value == 192 * GIB
    assert AHBM.encode(Location(SubUnit.M_CPU, cube, 0)).value == 224 * GIB
    assert AHBM.encode(Location(SubUnit.IO_CPU, SipCoord(0), 0)).value == 16 << 42


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (48 * GIB, "a byte of HBM, TCM, PE_CPU, SRAM or M_CPU"),
        (128 * GIB + 16 * 2**20, "a byte of HBM, TCM"),
        (192 * GIB + 32 * 2**20, "a byte of HBM, TCM"),
        (256 * GIB, "a byte of HBM, TCM"),
        ((16 << 42) + 2**24, "a byte of an IO_CPU in the 0x10000000000 bytes of an IO die"),
        (17 << 42, "a byte of an IO_CPU"),
        (21 << 42, "a die in 0..15 or 16"),
        (2 << 47, "a byte of HBM"),
    ],
)
def test_a_reserved_address_is_refused_with_its_fields_and_who_asked(
    value: int, expected: str
) -> None:
    with pytest.raises(SpecError) as failure:
        AHBM.decode(PhysicalAddress(value), requester="sip0.cube3.pe5.dma")
    assert expected in failure.value.expected
    sip, die, offset = value >> 47, value >> 42 & 31, value % 2**42
    fields = f"SIP {sip}, die {die}, offset {offset:#x}, asked by sip0.cube3.pe5.dma"
    assert failure.value.found == f"physical {value:#x} = {fields}"


@pytest.mark.parametrize(
    "location",
    [
        Location(SubUnit.HBM, PeCoord(0, 0, 0), 6 * GIB),
        Location(SubUnit.HBM, PeCoord(0, 0, 8), 0),
        Location(SubUnit.HBM, CubeCoord(0, 0), 0),
        Location(SubUnit.TCM, PeCoord(0, 16, 0), 0),
        Location(SubUnit.SRAM, CubeCoord(2, 0), 0),
        Location(SubUnit.SRAM, CubeCoord(0, 0), -1),
    ],
)
def test_a_location_that_does_not_exist_is_refused(location: Location) -> None:
    with pytest.raises(SpecError, match="physical address"):
        AHBM.encode(location)


def test_a_machine_without_an_io_chiplet_has_no_io_die() -> None:
    with pytest.raises(SpecError, match="name a place that exists"):
        LAYOUTS[1].encode(Location(SubUnit.IO_CPU, SipCoord(0), 0))


@pytest.mark.parametrize("value", [-1, True, 1.0, "1"])
def test_an_address_that_is_no_count_of_bytes_is_refused(value: object) -> None:
    with pytest.raises(SpecError, match="pass a whole number of bytes"):
        PhysicalAddress(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (MachineSpec(pe=PeSpec(tcm=TcmSpec(capacity_bytes=8 * GIB))), "pe.tcm.capacity_bytes"),
        (
            MachineSpec(cube=CubeSpec(sram=SramSpec(capacity_bytes=33 * GIB))),
            "cube.sram.capacity_bytes",
        ),
    ],
)
def test_a_memory_larger_than_its_window_is_refused(spec: MachineSpec, field: str) -> None:
    with pytest.raises(SpecError) as failure:
        build_address_layout(spec)
    assert failure.value.where == field
