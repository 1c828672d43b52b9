"""What a pseudo-channel did, and why its data bus stood still."""

from dataclasses import astuple, dataclass
from typing import NamedTuple


class ChannelCounters(NamedTuple):
    """Counters of a pseudo-channel, in bursts; of a simple memory, in bytes.

    ``busy_ps`` and the five causes of loss add up to ``window_ps``.
    """

    read_bursts: int
    write_bursts: int
    row_hits: int
    row_closed: int
    row_conflicts: int
    busy_ps: int
    idle_ps: int
    refresh_ps: int
    turnaround_ps: int
    bank_group_ps: int
    row_ps: int
    window_ps: int  # from 0 to the end of the last data

    @property
    def num_bursts(self) -> int:
        return self.read_bursts + self.write_bursts


class Gap(NamedTuple):
    """A column command and what it waited for, all as command times of its burst."""

    could_ps: int  # the data bus would have been ready
    issue_ps: int
    accepted_ps: int
    refresh_start_ps: int  # the last refresh of its bank
    refresh_end_ps: int
    is_turned: bool  # the command before it had the other direction
    columns_ps: int  # earlier column commands allowed it: CCD, or WTR and RTW if turned


@dataclass(slots=True)
class Tally:
    """The counters while they grow."""

    read_bursts: int = 0
    write_bursts: int = 0
    row_hits: int = 0
    row_closed: int = 0
    row_conflicts: int = 0
    busy_ps: int = 0
    idle_ps: int = 0
    refresh_ps: int = 0
    turnaround_ps: int = 0
    bank_group_ps: int = 0
    row_ps: int = 0

    def add_gap(self, gap: Gap) -> None:
        """Deal the time from ``could_ps`` to ``issue_ps`` out to its causes, in the law's order."""
        from_ps = max(gap.could_ps, min(gap.issue_ps, gap.accepted_ps))
        self.idle_ps += from_ps - gap.could_ps
        refresh_ps = max(0, gap.refresh_end_ps - max(gap.refresh_start_ps, from_ps))
        self.refresh_ps += refresh_ps
        rest_ps = gap.issue_ps - from_ps - refresh_ps
        columns_ps = min(rest_ps, max(0, gap.columns_ps - from_ps))
        if gap.is_turned:
            self.turnaround_ps += columns_ps
        else:
            self.bank_group_ps += columns_ps
        self.row_ps += rest_ps - columns_ps

    def counters(self, window_ps: int) -> ChannelCounters:
        return ChannelCounters._make((*astuple(self), window_ps))
