"""When banks are refreshed, and how long they were blocked by it."""

from tilewright.engine.banked_banks import CLOSED, LONG_AGO_PS, Banks
from tilewright.engine.banked_spec import BankedSpec, RefreshScope

NEVER_PS = 2**62 + 2**61  # beyond all decisions, which a core keeps before 2^62


class Refresh:
    """Refreshes of one pseudo-channel, one *turn* after the other; a turn closes its banks."""

    def __init__(self, spec: BankedSpec) -> None:
        self._spec = spec.refresh
        one_bank = self._spec is not None and self._spec.scope is RefreshScope.ONE_BANK
        self._turns = spec.num_banks if one_bank else 1  # in one interval
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
        end_ps = start_ps + (0 if self._spec is None else self._spec.busy_ps)
        for bank in closing:
            banks.idle_ps[bank] = end_ps
        self._start_ps[turn], self._end_ps[turn] = due_ps, end_ps
        self._blocked_ps[turn] += end_ps - due_ps

    def _due_ps(self, index: int) -> int:
        if self._spec is None:
            return NEVER_PS
        return self._spec.first_ps + index * self._spec.interval_ps // self._turns

    def _latest(self, now_ps: int) -> int:
        """The last turn that is due; there is one."""
        if self._spec is None:
            return 0
        ready = (now_ps - self._spec.first_ps + 1) * self._turns - 1
        return ready // self._spec.interval_ps
