"""What a launch and a message cost on an idle machine, from its spec: figures of the cost model."""

from tilewright.device.least_time import command_times, way_ps
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.route import Traffic


def launch_ps(machine: Machine, pe: PeCoord) -> int:
    """Dispatch of a command from the host to a PE, and its completion back; no work in between."""
    time = command_times(machine, (pe,), is_least=False)[pe]
    return time.there_ps + time.back_ps


def message_ps(machine: Machine, source: PeCoord, target: PeCoord, num_bytes: int) -> int:
    """A message between the DMA channels of two PEs, with the commands that send and receive it."""
    start, end = (machine.node_of(NodeKind.PE_DMA, pe) for pe in (source, target))
    options = (Traffic.COMMUNICATION, source.pe, num_bytes)
    on_links = way_ps(machine, start, end, *options, is_least=False)
    return on_links + 2 * (machine.spec.pe.cpu.command_ps + machine.spec.pe.scheduler.command_ps)
