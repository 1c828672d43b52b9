"""What a launch was, when it is over."""

from dataclasses import dataclass, field

from tilewright.executor.run import Counters
from tilewright.machine.coords import PeCoord


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """Times are of the context's clock. A launch without programs starts and ends at one time."""

    name: str
    kernel: str
    grid: tuple[int, ...]
    num_programs: int
    pes: tuple[PeCoord, ...]  # that ran programs
    submitted_ps: int
    first_start_ps: int  # the first PE has the command
    last_start_ps: int
    last_end_ps: int  # the last command of the last PE is complete
    completed_ps: int  # the host knows
    last_pe: PeCoord | None  # that ends last, the lowest of them; None: no programs
    last_owner: int | None  # the engine's number of what ended last on it
    counters: Counters = field(repr=False)
    longest_pe_ps: int = 0  # of all PEs, the longest time from a PE's start to its end

    @property
    def dispatch_ps(self) -> int:
        """From the host to the first PE."""
        return self.first_start_ps - self.submitted_ps

    @property
    def execution_ps(self) -> int:
        """From the first start to the last end."""
        return self.last_end_ps - self.first_start_ps

    @property
    def completion_ps(self) -> int:
        """From the last end to the host."""
        return self.completed_ps - self.last_end_ps

    @property
    def latency_ps(self) -> int:
        return self.completed_ps - self.submitted_ps

    @property
    def skew_ps(self) -> int:
        """Between the first and the last PE that starts."""
        return self.last_start_ps - self.first_start_ps
