"""The MMUs of a machine's PEs, each with its page table."""

from tilewright.device.mmu import Mmu
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.machine.spec import MmuSpec
from tilewright.memory.page_table import PageTable


class Mmus(dict[PeCoord, Mmu]):
    """The MMUs that were asked for, by PE; each is made when it is first asked for."""

    def __init__(self, spec: MmuSpec) -> None:
        super().__init__()
        self._spec = spec

    def __missing__(self, pe: PeCoord) -> Mmu:
        name = f"{place_name(pe)}.mmu"
        mmu = self[pe] = Mmu(name, self._spec, PageTable(name, self._spec.page_bytes))
        return mmu
