"""The banks of one pseudo-channel: which command is legal when. No policy, no queues."""

from enum import Enum

from tilewright.engine.banked_counters import Gap, Tally
from tilewright.engine.banked_spec import BankedSpec

LONG_AGO_PS = -(2**61)  # before any distance from it could matter
CLOSED = -1


class Opening(Enum):
    """What the next column command of a bank was opened for."""

    AFTER_CLOSED = "closed"
    AFTER_CONFLICT = "conflict"
    USED = "used"


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
        self._least_ccd_ps = min(map(min, spec.ccd_ps))
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
            tally.write_bursts += 1
        else:
            self._after_reads_ps = now_ps + timing.rtw_ps
            close_ps = now_ps + timing.rtp_ps
            self.data_end_ps = now_ps + timing.read_end_ps
            tally.read_bursts += 1
        for group, ccd_ps in enumerate(self.spec.ccd_ps[self._group_of[bank]]):
            if now_ps + ccd_ps > self._spacing_ps[group]:
                self._spacing_ps[group] = now_ps + ccd_ps
        self.precharge_ps[bank] = max(self.precharge_ps[bank], close_ps)
        self.issued_ps = now_ps
        self._was_write = is_write
        tally.busy_ps += timing.bl_ps
        opening = self._opening[bank]
        tally.row_hits += opening is Opening.USED
        tally.row_closed += opening is Opening.AFTER_CLOSED
        tally.row_conflicts += opening is Opening.AFTER_CONFLICT
        self.openings[bank] += opening is not Opening.USED
        self._opening[bank] = Opening.USED

    def _forbid_reads(self, own: int, now_ps: int) -> None:
        timing = self.spec.timing
        for group, before_ps in enumerate(self._after_writes_ps):
            wtr_ps = timing.wtr_l_ps if group == own else timing.wtr_s_ps
            self._after_writes_ps[group] = max(before_ps, now_ps + timing.write_end_ps + wtr_ps)

    def _turn_ps(self, group: int, is_write: bool) -> int:
        return self._after_reads_ps if is_write else self._after_writes_ps[group]
