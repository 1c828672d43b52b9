"""What a plan takes on paper: alpha, beta and gamma of the machine's spec, never of a fit.

*alpha* is the latency of a message: the path of its last packet, the ports that its last fragment
passes, and the commands on both sides. *beta* is the time of a byte on the narrowest link of its
way, over all who share that link in the same turn. *gamma* is the time of a byte inside a PE: both
operands through the read port of the TCM, the vector unit, the result through the write port; and
the HBM, where a block comes from at the beginning and goes to at the end.
"""

from dataclasses import dataclass
from fractions import Fraction

from tilewright.device.ipcq import RingSpec
from tilewright.device.least_time import way_ps
from tilewright.device.memory import first_access_ps
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.route import Traffic, zero_load_ps
from tilewright.machine.totals import slice_bytes_per_us, usable_share
from tilewright.units import PS_PER_S, PS_PER_US, num_flits


@dataclass(frozen=True, slots=True)
class PeCost:
    """What the spec says of a PE: picoseconds of commands, and of a byte or an element."""

    issue_ps: int  # of a command by the CPU
    dispatch_ps: int  # of a part of it by the scheduler
    read: Fraction  # of a byte at the read port of the TCM
    write: Fraction
    vector: Fraction  # of an element
    load_ps: int  # until the first bytes of the HBM are there
    store_ps: int
    memory: Fraction  # of a byte of the PE's slice, refresh counted in
    register_bytes: int

    @classmethod
    def of(cls, machine: Machine, pe: PeCoord) -> "PeCost":
        spec = machine.spec
        tcm, vector, hbm = spec.pe.tcm, spec.pe.vector, spec.cube.hbm
        return cls(
            spec.pe.cpu.command_ps,
            spec.pe.scheduler.command_ps,
            Fraction(PS_PER_US, tcm.read_bytes_per_us),
            Fraction(PS_PER_US, tcm.write_bytes_per_us),
            Fraction(PS_PER_S * vector.simple_cycles, vector.lanes * vector.hz),
            _access_ps(machine, pe, is_write=False),
            _access_ps(machine, pe, is_write=True),
            Fraction(PS_PER_US, slice_bytes_per_us(spec)) / usable_share(hbm),
            spec.pe.registers.capacity_bytes,
        )


def _access_ps(machine: Machine, pe: PeCoord, *, is_write: bool) -> int:
    """Of the first packet to or from a PE's own slice, on an idle machine."""
    spec = machine.spec
    dma, memory = machine.node_of(NodeKind.PE_DMA, pe), machine.node_of(NodeKind.HBM_CTRL, pe)
    sent_bytes, back_bytes = (spec.packet_bytes, 1) if is_write else (1, spec.packet_bytes)
    out_ps = way_ps(machine, dma, memory, Traffic.REQUEST, pe.pe, sent_bytes, is_least=False)
    back_ps = way_ps(machine, memory, dma, Traffic.RESPONSE, pe.pe, back_bytes, is_least=False)
    first_ps = 0
    if spec.cube.hbm.impl is None:
        first_ps = first_access_ps(spec.cube.hbm, spec.packet_bytes, is_write=is_write)
    return out_ps + back_ps + first_ps


@dataclass(frozen=True, slots=True)
class Way:
    """From one PE to another: its links, and what its narrowest one takes for a byte."""

    machine: Machine
    links: tuple[int, ...]
    byte: Fraction

    def latency_ps(self, num_bytes: int, ring: RingSpec, cost: PeCost) -> int:
        """Beside the time on the narrowest link: of the last packet and of the last fragment.

        The sender's queue takes a dispatch, and one more to look at the credits.
        """
        spec = self.machine.spec
        packet_bytes = min(num_bytes, spec.packet_bytes)
        flits = num_flits(packet_bytes, flit_bytes=spec.flit_bytes)
        links = [self.machine.links[link] for link in self.links]
        on_the_way = zero_load_ps(links, num_flits=flits, flit_bytes=spec.flit_bytes)
        fragment_bytes = min(num_bytes, ring.slot_bytes)
        ports = int(fragment_bytes * (cost.write + cost.read))
        return on_the_way - int(packet_bytes * self.byte) + ports + 2 * cost.dispatch_ps


def way_of(machine: Machine, sender: PeCoord, receiver: PeCoord) -> Way:
    start, end = (machine.node_of(NodeKind.PE_DMA, pe) for pe in (sender, receiver))
    route = machine.route(start, end, Traffic.COMMUNICATION, sender.pe)
    links = tuple(link for link, _ in route)
    slowest = min(machine.links[link].bytes_per_us for link in links)
    return Way(machine, links, Fraction(PS_PER_US, slowest))


def message_ps(machine: Machine, sender: PeCoord, receiver: PeCoord) -> int:
    """From the sender's command to the first flit at the receiver, on an idle machine."""
    cost = machine.spec.pe
    commands_ps = 2 * cost.cpu.command_ps + cost.scheduler.command_ps
    start, end = (machine.node_of(NodeKind.PE_DMA, pe) for pe in (sender, receiver))
    on_links = way_ps(machine, start, end, Traffic.COMMUNICATION, sender.pe, 1, is_least=False)
    return on_links + commands_ps
