import pytest

from tilewright.errors import AddressError, PageFaultError, ProgramError, RegistryError
from tilewright.interop.kernbench.address import PeMmu
from tilewright.interop.kernbench.refused import REFUSED

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
