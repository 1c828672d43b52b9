"""Command processors: IO CPU, M_CPU, PE CPU and PE scheduler differ in their time alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.device.size import check_size
from tilewright.engine import ServerSpec
from tilewright.errors import UnitError
from tilewright.machine.spec import CommandProcessorSpec


@dataclass(frozen=True, slots=True)
class CommandProcessor:
    """Takes commands one after the other in order of arrival, ``command_ps`` for each:

        done = max(arrival, done of the one before) + command_ps

    so n commands that wait at t are done at t + n command_ps. Handing a command on to n others is
    n commands: the i-th of them leaves i command_ps after the first one could start.

    >>> cpu = CommandProcessor("sip0.cube0.m_cpu", CommandProcessorSpec(command_ps=5_000))
    >>> cpu.fan_out_ps(1_000, 3)
    (6000, 11000, 16000)
    """

    name: str  # a path, "sip0.io0.io_cpu"
    spec: CommandProcessorSpec

    def done_ps(self, arrivals_ps: Sequence[int]) -> tuple[int, ...]:
        """When each command of an idle processor is done; arrivals are in order of time."""
        done: list[int] = []
        free_ps = last_ps = 0
        for arrival_ps in arrivals_ps:
            if arrival_ps < last_ps:
                found = f"an arrival at {arrival_ps} ps after one at {last_ps} ps"
                raise UnitError(self.name, found, "arrivals in order of time", "sort them")
            last_ps = arrival_ps
            free_ps = max(arrival_ps, free_ps) + self.spec.command_ps
            done.append(free_ps)
        return tuple(done)

    def fan_out_ps(self, now_ps: int, num_targets: int) -> tuple[int, ...]:
        """When an idle processor has sent each command that one at ``now_ps`` turns into."""
        check_size(self.name, "num_targets", num_targets)
        return self.done_ps([now_ps] * num_targets)

    def server(self) -> ServerSpec:
        """The same law on an engine: each command holds the server for ``command_ps``."""
        return ServerSpec(self.name)
