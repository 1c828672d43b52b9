"""The banks of one pseudo-channel: which command is legal when, refresh included. No policy."""

from collections import Counter
from enum import Enum
from typing import NamedTuple

from tilewright.engine.dram.spec import BankedSpec
from tilewright.engine.statistics import ChannelCounters


class Gap(NamedTuple):
    """A column command and what it waited for, all as command times of its burst."""

    could_ps: int  # the data bus would have been ready
    issue_ps: int
    accepted_ps: int
    refresh_start_ps: int  # the last refresh of its bank
    refresh_end_ps: int
    is_turned: bool  # the command before it had the other direction
    columns_ps: int  # earlier column commands allowed it: CCD, or WTR and RTW if turned


class Tally(Counter[str]):
    """The counters while they grow, by the names that ``ChannelCounters`` has."""

    def add_gap(self, gap: Gap) -> None:
        """Deal the time from ``could_ps`` to ``issue_ps`` out to its causes, in the law's order."""
        from_ps = max(gap.could_ps, min(gap.issue_ps, gap.accepted_ps))
        self["idle_ps"] += from_ps - gap.could_ps
        refresh_ps = max(0, gap.refresh_end_ps - max(gap.refresh_start_ps, from_ps))
        self["refresh_ps"] += refresh_ps
        rest_ps = gap.issue_ps - from_ps - refresh_ps
        columns_ps = min(rest_ps, max(0, gap.columns_ps - from_ps))
        self["turnaround_ps" if gap.is_turned else "bank_group_ps"] += columns_ps
        self["row_ps"] += rest_ps - columns_ps

    def counters(self, window_ps: int) -> ChannelCounters:
        return ChannelCounters._make(
            [*map(self.__getitem__, ChannelCounters._fields[:-1]), window_ps]
        )


LONG_AGO_PS = -(2**61)  # before any distance from it could matter
CLOSED = -1


class Opening(Enum):
    """What the next column command of a bank finds, by the counter that it counts for."""

    AFTER_CLOSED = "row_closed"
    AFTER_CONFLICT = "row_conflicts"
    USED = "row_hits"


class Banks:
    """Timing state; a time that a method names is the earliest legal one."""

    def __init__(self, spec: BankedSpec) -> None:
        self.spec = spec
        self.open_row = [CLOSED] * spec.num_banks
        self.precharge_ps = [LONG_AGO_PS] * spec.num_banks  # may be closed from then on
        self.idle_ps = [LONG_AGO_PS] * spec.num_banks  # closed, and RP is over
        self._activated_ps = [LONG_AGO_PS] * spec.num_banks
        self._opening = [Opening.AFTER_CLOSED] * spec.num_banks
        self.openings = [0] * spec.num_banks  # rows that a burst has used, by bank
        self._group_activate_ps = [LONG_AGO_PS] * spec.num_groups  # RRD
        self._activates_ps = [LONG_AGO_PS] * 4  # the last four of the channel, oldest first
        self._group_of = [bank // spec.banks for bank in range(spec.num_banks)]
        self._spacing_ps = [LONG_AGO_PS] * spec.num_groups  # column commands: CCD
        self._after_writes_ps = [LONG_AGO_PS] * spec.num_groups  # reads: WTR
        self._after_reads_ps = LONG_AGO_PS  # writes: RTW
        self._was_write: bool | None = None
        timing = spec.timing
        groups = range(spec.num_groups)
        # column to column, from group to group
        self._ccd_ps = [[_ccd_ps(spec, one, other) for other in groups] for one in groups]
        self._least_ccd_ps = min(map(min, self._ccd_ps))
        self.pace_ps = max(timing.bl_ps, self._least_ccd_ps)  # of commands of one direction
        self._rcd_ps = (timing.rcd_read_ps, timing.rcd_write_ps)  # by direction, writes second
        self._latency_ps = (timing.cl_ps, timing.cwl_ps)
        self.issued_ps = LONG_AGO_PS  # last column command
        self.data_end_ps = 0

    def column_ps(self, bank: int, is_write: bool) -> int:
        """A column command to the open row of ``bank``."""
        group = self._group_of[bank]
        return max(
            self._activated_ps[bank] + self._rcd_ps[is_write],
            self.bus_ps(is_write),
            self._spacing_ps[group],
            self._turn_ps(group, is_write),
        )

    def floor_ps(self, is_write: bool) -> int:
        """No column command goes before that, whatever its bank."""
        return max(self.issued_ps + self._least_ccd_ps, self.bus_ps(is_write))

    def bus_ps(self, is_write: bool) -> int:
        """A column command whose data follow those of the last one at once."""
        return self.data_end_ps - self._latency_ps[is_write]

    def activate_ps(self, bank: int) -> int:
        timing = self.spec.timing
        return max(
            self.idle_ps[bank],
            self._activated_ps[bank] + timing.rc_ps,
            self._group_activate_ps[self._group_of[bank]],
            self._activates_ps[0] + timing.faw_ps,
        )

    def precharge(self, bank: int, now_ps: int) -> None:
        """Close a bank for a burst that wants another row."""
        self.close(bank, now_ps)
        self._opening[bank] = Opening.AFTER_CONFLICT

    def close(self, bank: int, now_ps: int) -> None:
        """Close a bank for a refresh."""
        self.open_row[bank] = CLOSED
        self.idle_ps[bank] = now_ps + self.spec.timing.rp_ps
        self._opening[bank] = Opening.AFTER_CLOSED

    def activate(self, bank: int, row: int, now_ps: int) -> None:
        self.open_row[bank] = row
        self._activated_ps[bank] = now_ps
        self._activates_ps = [*self._activates_ps[1:], now_ps]
        self.precharge_ps[bank] = now_ps + self.spec.timing.ras_ps
        for group, before_ps in enumerate(self._group_activate_ps):
            is_own = group == self._group_of[bank]
            rrd_ps = self.spec.timing.rrd_l_ps if is_own else self.spec.timing.rrd_s_ps
            self._group_activate_ps[group] = max(before_ps, now_ps + rrd_ps)

    def gap(
        self, bank: int, is_write: bool, now_ps: int, accepted_ps: int, refresh: tuple[int, int]
    ) -> Gap:
        """What a column command at ``now_ps`` waited for; ask before it is issued."""
        is_turned = self._was_write is not None and self._was_write != is_write
        group = self._group_of[bank]
        columns_ps = self._turn_ps(group, is_write) if is_turned else self._spacing_ps[group]
        could_ps = self.bus_ps(is_write)
        return Gap(could_ps, now_ps, accepted_ps, *refresh, is_turned, columns_ps)

    def issue(self, bank: int, is_write: bool, now_ps: int, tally: Tally) -> None:
        """A column command: read or write one burst of the open row."""
        timing = self.spec.timing
        if is_write:
            self._forbid_reads(self._group_of[bank], now_ps)
            close_ps = now_ps + timing.write_end_ps + timing.wr_ps
            self.data_end_ps = now_ps + timing.write_end_ps
        else:
            self._after_reads_ps = now_ps + timing.rtw_ps
            close_ps = now_ps + timing.rtp_ps
            self.data_end_ps = now_ps + timing.read_end_ps
        for group, ccd_ps in enumerate(self._ccd_ps[self._group_of[bank]]):
            if now_ps + ccd_ps > self._spacing_ps[group]:
                self._spacing_ps[group] = now_ps + ccd_ps
        self.precharge_ps[bank] = max(self.precharge_ps[bank], close_ps)
        self.issued_ps = now_ps
        self._was_write = is_write
        opening = self._opening[bank]
        tally["write_bursts" if is_write else "read_bursts"] += 1
        tally[opening.value] += 1
        tally["busy_ps"] += timing.bl_ps
        self.openings[bank] += opening is not Opening.USED
        self._opening[bank] = Opening.USED

    def _forbid_reads(self, own: int, now_ps: int) -> None:
        timing = self.spec.timing
        for group, before_ps in enumerate(self._after_writes_ps):
            wtr_ps = timing.wtr_l_ps if group == own else timing.wtr_s_ps
            self._after_writes_ps[group] = max(before_ps, now_ps + timing.write_end_ps + wtr_ps)

    def _turn_ps(self, group: int, is_write: bool) -> int:
        return self._after_reads_ps if is_write else self._after_writes_ps[group]


NEVER_PS = 2**62 + 2**61  # beyond all decisions, which a core keeps before 2^62


def _ccd_ps(spec: BankedSpec, one: int, other: int) -> int:
    if one == other:
        return spec.timing.ccd_l_ps
    same_stack = one // spec.bank_groups == other // spec.bank_groups
    return spec.timing.ccd_s_ps if same_stack else spec.timing.ccd_r_ps


class Refresh:
    """Refreshes of one pseudo-channel, one *turn* after the other; a turn closes its banks."""

    def __init__(self, spec: BankedSpec) -> None:
        self._first_ps, self._interval_ps, self._busy_ps = NEVER_PS, 0, 0
        if spec.refresh is not None:
            refresh = spec.refresh
            self._first_ps, self._interval_ps = refresh.first_ps, refresh.interval_ps
            self._busy_ps = refresh.busy_ps
        self._turns = spec.refresh_turns or 1  # in one interval
        self._all_banks = range(spec.num_banks)
        self._next = 0
        self.due_ps = self._due_ps(0)
        self._start_ps = [LONG_AGO_PS] * self._turns
        self._end_ps = [LONG_AGO_PS] * self._turns
        self._blocked_ps = [0] * self._turns

    def last(self, bank: int) -> tuple[int, int]:
        """Start and end of the last refresh of a bank, from when it was due to when it was over."""
        turn = bank % self._turns
        return self._start_ps[turn], self._end_ps[turn]

    def blocked_ps(self, bank: int, until_ps: int) -> int:
        """How long refreshes have blocked a bank; only differences mean something."""
        turn = bank % self._turns
        return self._blocked_ps[turn] - max(0, self._end_ps[turn] - until_ps)

    def settle(self, banks: Banks, now_ps: int) -> None:
        """Make the refreshes that are due; column commands before them must have been issued."""
        if self.due_ps > now_ps:
            return
        # after a turn that found banks open, the next one finds them closed: the rest is periodic
        self._next = max(self._next, self._latest(now_ps) - 2 * self._turns + 1)
        while self._due_ps(self._next) <= now_ps:
            self._make(banks, self._due_ps(self._next))
            self._next += 1
        self.due_ps = self._due_ps(self._next)

    def _make(self, banks: Banks, due_ps: int) -> None:
        turn = self._next % self._turns
        closing = self._all_banks if self._turns == 1 else (turn,)
        for bank in closing:
            if banks.open_row[bank] != CLOSED:
                banks.close(bank, max(due_ps, banks.precharge_ps[bank]))
        start_ps = max(due_ps, *(banks.idle_ps[bank] for bank in closing))
        end_ps = start_ps + self._busy_ps
        for bank in closing:
            banks.idle_ps[bank] = end_ps
        self._start_ps[turn], self._end_ps[turn] = due_ps, end_ps
        self._blocked_ps[turn] += end_ps - due_ps

    def _due_ps(self, index: int) -> int:
        return self._first_ps + index * self._interval_ps // self._turns

    def _latest(self, now_ps: int) -> int:
        """The last turn that is due; there is one."""
        ready = (now_ps - self._first_ps + 1) * self._turns - 1
        return ready // self._interval_ps
