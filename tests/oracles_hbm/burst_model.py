"""A memory served burst by burst, one tick of time after the other: the oracle of banked memories.

Nothing here plans ahead. Every command is checked against every earlier one of its channel with a
table of least distances, and at every tick the steps of ``docs/memory.md`` are tried in order.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from operator import attrgetter
from typing import NamedTuple

from tilewright.engine.dram.spec import BankedSpec, RefreshScope
from tilewright.engine.statistics import ChannelCounters


class Request(NamedTuple):
    arrive_ps: int
    access_id: int
    is_write: bool
    address: int
    num_bytes: int


class Served(NamedTuple):
    """What is known about an access at the end."""

    accepted_ps: int
    done_ps: int
    refresh_ps: int


class Outcome(NamedTuple):
    served: dict[int, Served]
    counters: tuple[ChannelCounters, ...]
    openings: tuple[tuple[int, ...], ...]  # rows that bursts used, by channel and bank


class Command(NamedTuple):
    name: str  # ACT, PRE, RD, WR, REF
    bank: int
    at_ps: int


SAME_BANK: dict[tuple[str, str], Callable[[BankedSpec], int]] = {
    ("ACT", "ACT"): lambda spec: max(spec.timing.rc_ps, spec.timing.rrd_l_ps),
    ("ACT", "RD"): lambda spec: spec.timing.rcd_read_ps,
    ("ACT", "WR"): lambda spec: spec.timing.rcd_write_ps,
    ("ACT", "PRE"): lambda spec: spec.timing.ras_ps,
    ("PRE", "ACT"): lambda spec: spec.timing.rp_ps,
    ("PRE", "REF"): lambda spec: spec.timing.rp_ps,
    ("RD", "PRE"): lambda spec: spec.timing.rtp_ps,
    ("WR", "PRE"): lambda spec: spec.timing.cwl_ps + spec.timing.bl_ps + spec.timing.wr_ps,
    ("REF", "ACT"): lambda spec: spec.refresh.busy_ps if spec.refresh else 0,
}


@dataclass(eq=False)
class Burst:
    age: tuple[int, int, int, int, int]  # accepted, round, access, chunk, place in the chunk
    is_write: bool
    bank: int
    row: int
    accepted_ps: int
    issued_ps: int | None = None

    @property
    def chunk(self) -> tuple[int, ...]:
        return self.age[:4]


@dataclass
class Due:
    """A refresh that has been asked for and not yet been given."""

    since_ps: int
    banks: list[int]


@dataclass
class ChannelModel:
    spec: BankedSpec
    waiting: list[Burst] = field(default_factory=list)
    begun: set[tuple[int, ...]] = field(default_factory=set)
    history: list[Command] = field(default_factory=list)  # as far back as any distance reaches
    columns: dict[tuple[str, int], Command] = field(default_factory=dict)  # last of each bank
    rows: dict[int, int] = field(default_factory=dict)  # of the open banks
    direction: str = "RD"
    draining: bool = False
    closing: bool = False
    due: list[Due] = field(default_factory=list)
    windows: list[tuple[int, int, list[int]]] = field(default_factory=list)
    refreshes: int = 0
    opened_by: dict[int, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    openings: dict[int, int] = field(default_factory=dict)  # by bank

    def tick(self, now: int) -> None:
        busy = True
        while busy:
            self.ask_refresh(now)
            self.choose_direction()
            busy = self.refresh(now) or self.precharge(now) or self.activate(now)
            busy = busy or self.column(now)

    # --- legality: one pair of commands at a time

    def distance(self, old: Command, name: str, bank: int) -> int:
        timing, pair = self.spec.timing, (old.name, name)
        if old.bank == bank and pair in SAME_BANK:
            least = SAME_BANK[pair](self.spec)
        elif pair == ("ACT", "ACT"):
            same = self.group(old.bank) == self.group(bank)
            least = timing.rrd_l_ps if same else timing.rrd_s_ps
        elif pair in (("RD", "RD"), ("WR", "WR")):
            least = max(self.ccd_ps(old.bank, bank), timing.bl_ps)
        elif pair == ("RD", "WR"):
            bus = timing.cl_ps + timing.bl_ps - timing.cwl_ps
            least = max(self.ccd_ps(old.bank, bank), timing.rtw_ps, bus)
        elif pair == ("WR", "RD"):
            least = max(self.ccd_ps(old.bank, bank), self.write_to_read_ps(old.bank, bank))
        else:
            least = 0
        return least

    def group(self, bank: int) -> int:
        return bank // self.spec.banks

    def ccd_ps(self, one: int, other: int) -> int:
        timing = self.spec.timing
        if self.group(one) == self.group(other):
            return timing.ccd_l_ps
        stacks = [self.group(bank) // self.spec.bank_groups for bank in (one, other)]
        return timing.ccd_s_ps if stacks[0] == stacks[1] else timing.ccd_r_ps

    def write_to_read_ps(self, one: int, other: int) -> int:
        timing = self.spec.timing
        same = self.group(one) == self.group(other)
        wtr_ps = timing.wtr_l_ps if same else timing.wtr_s_ps
        return timing.cwl_ps + timing.bl_ps + wtr_ps

    def is_legal(self, name: str, bank: int, now: int) -> bool:
        for old in reversed(self.history):
            if now < old.at_ps + self.distance(old, name, bank):
                return False
        acts = [old.at_ps for old in self.history if old.name == "ACT"]
        return name != "ACT" or len(acts) < 4 or now >= acts[-4] + self.spec.timing.faw_ps

    def give(self, name: str, bank: int, now: int) -> None:
        reach = sum(astuple(self.spec.timing))  # more than any one distance
        if self.spec.refresh:
            reach += self.spec.refresh.busy_ps
        self.history = [old for old in self.history if old.at_ps + reach > now]
        self.history.append(Command(name, bank, now))
        if name in ("RD", "WR"):
            self.columns.pop((name, bank), None)
            self.columns[name, bank] = self.history[-1]

    # --- the steps

    def queued(self, name: str) -> list[Burst]:
        return [burst for burst in self.waiting if burst.is_write == (name == "WR")]

    def choose_direction(self) -> None:
        reads, writes = len(self.queued("RD")), len(self.queued("WR"))
        if writes >= self.spec.drain_high_bursts:
            self.draining = True
        if writes <= self.spec.drain_low_bursts:
            self.draining = False
        wanted = self.direction
        if self.draining or (writes and not reads):
            wanted = "WR"
        elif reads:
            wanted = "RD"
        self.closing = wanted != self.direction
        if self.closing and not self.begun:
            self.direction = wanted
            self.closing = False

    def eligible(self) -> list[Burst]:
        found = self.queued(self.direction)
        if self.closing:
            found = [burst for burst in found if burst.chunk in self.begun]
        return sorted(found, key=lambda burst: burst.age)

    def wanted_rows(self) -> dict[int, int]:
        """By bank, in order of age: the row of the oldest burst that needs the bank."""
        wanted: dict[int, int] = {}
        for burst in self.eligible():
            wanted.setdefault(burst.bank, burst.row)
        return wanted

    def is_blocked(self, bank: int) -> bool:
        return any(bank in due.banks for due in self.due)

    def ask_refresh(self, now: int) -> None:
        refresh, num_banks = self.spec.refresh, self.spec.num_banks
        if refresh is None:
            return
        turns = num_banks if refresh.scope is RefreshScope.ONE_BANK else 1
        while now >= (since := refresh.first_ps + self.refreshes * refresh.interval_ps // turns):
            banks = [self.refreshes % turns] if turns > 1 else list(range(num_banks))
            self.due.append(Due(since, banks))
            self.refreshes += 1

    def refresh(self, now: int) -> bool:
        assert self.spec.refresh is not None or not self.due
        for due in self.due:
            for bank in due.banks:
                if bank in self.rows and self.is_legal("PRE", bank, now):
                    self.close(bank, now, "closed")
                    return True
            if all(b not in self.rows and self.is_legal("REF", b, now) for b in due.banks):
                for bank in due.banks:
                    self.give("REF", bank, now)
                assert self.spec.refresh is not None
                self.windows.append((due.since_ps, now + self.spec.refresh.busy_ps, due.banks))
                self.due.remove(due)
                return True
        return False

    def close(self, bank: int, now: int, why: str) -> None:
        del self.rows[bank]
        self.opened_by[bank] = why
        self.give("PRE", bank, now)

    def precharge(self, now: int) -> bool:
        for bank, row in self.wanted_rows().items():
            wrong = bank in self.rows and self.rows[bank] != row
            if wrong and not self.is_blocked(bank) and self.is_legal("PRE", bank, now):
                self.close(bank, now, "conflicts")
                return True
        return False

    def activate(self, now: int) -> bool:
        for bank, row in self.wanted_rows().items():
            can_open = bank not in self.rows and not self.is_blocked(bank)
            if can_open and self.is_legal("ACT", bank, now):
                self.rows[bank] = row
                self.give("ACT", bank, now)
                return True
        return False

    def column(self, now: int) -> bool:
        seen: set[tuple[int, ...]] = set()
        for burst in self.eligible():
            if burst.chunk in seen:
                continue  # not the next one of its chunk
            seen.add(burst.chunk)
            is_open = self.rows.get(burst.bank) == burst.row and not self.is_blocked(burst.bank)
            if is_open and self.is_legal(self.direction, burst.bank, now):
                self.issue(burst, now)
                return True
        return False

    def issue(self, burst: Burst, now: int) -> None:
        self.account(burst, now)
        self.give(self.direction, burst.bank, now)
        burst.issued_ps = now
        self.waiting.remove(burst)
        if any(other.chunk == burst.chunk for other in self.waiting):
            self.begun.add(burst.chunk)
        else:
            self.begun.discard(burst.chunk)

    # --- what it was for

    def count(self, name: str, amount: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + amount

    def account(self, burst: Burst, now: int) -> None:
        timing = self.spec.timing
        latency = timing.cwl_ps if burst.is_write else timing.cl_ps
        self.count("write_bursts" if burst.is_write else "read_bursts", 1)
        why = self.opened_by.get(burst.bank, "closed")
        self.count("row_" + why, 1)
        self.openings[burst.bank] = self.openings.get(burst.bank, 0) + (why != "hits")
        self.opened_by[burst.bank] = "hits"
        end = self.counts.get("window_ps", 0)
        lost = list(range(end - latency, now))  # each ps of the gap, as a command time
        self.count("busy_ps", timing.bl_ps)
        self.counts["window_ps"] = now + latency + timing.bl_ps
        columns = list(self.columns.values())
        turned = bool(columns) and columns[-1].name != self.direction
        if turned:
            bound = max(self.turn_ps(old, burst.bank) for old in columns)
        else:
            bounds = (old.at_ps + self.ccd_ps(old.bank, burst.bank) for old in columns)
            bound = max(bounds, default=-latency)
        since, until = self.last_window(burst.bank)
        idle = [at for at in lost if at < burst.accepted_ps]
        refresh = [at for at in lost if at >= burst.accepted_ps and since <= at < until]
        rest = len(lost) - len(idle) - len(refresh)
        first = max([end - latency, min(burst.accepted_ps, now)])
        waits = min(rest, max(0, bound - first))
        self.count("idle_ps", len(idle))
        self.count("refresh_ps", len(refresh))
        self.count("turnaround_ps" if turned else "bank_group_ps", waits)
        self.count("row_ps", rest - waits)

    def turn_ps(self, old: Command, bank: int) -> int:
        if old.name == self.direction:
            return old.at_ps
        if self.direction == "WR":
            return old.at_ps + self.spec.timing.rtw_ps
        return old.at_ps + self.write_to_read_ps(old.bank, bank)

    def last_window(self, bank: int) -> tuple[int, int]:
        found = [(since, until) for since, until, banks in self.windows if bank in banks]
        return found[-1] if found else (0, 0)

    def counters(self) -> ChannelCounters:
        return ChannelCounters(*(self.counts.get(name, 0) for name in ChannelCounters._fields))


def place(spec: BankedSpec, address: int) -> tuple[int, int, int]:
    """Channel, bank and row of a byte."""
    chunk, offset = divmod(address, spec.interleave_bytes)
    local, channel = divmod(chunk, spec.pseudo_channels)
    rest = local * spec.interleave_bytes + offset
    sizes = {
        "burst": spec.burst_bytes,
        "bank_group": spec.bank_groups,
        "column": spec.row_bytes // spec.burst_bytes,
        "bank": spec.banks,
        "stack_id": spec.stack_ids,
        "row": spec.rows,
    }
    found = {}
    for name in spec.address_map:
        found[name] = rest % sizes[name]
        rest //= sizes[name]
    group = found["stack_id"] * spec.bank_groups + found["bank_group"]
    return channel, group * spec.banks + found["bank"], found["row"]


@dataclass
class MemoryModel:
    spec: BankedSpec
    channels: list[ChannelModel] = field(init=False)
    bursts: dict[int, list[tuple[int, Burst]]] = field(default_factory=dict)
    rounds: int = 0

    def __post_init__(self) -> None:
        self.channels = [ChannelModel(self.spec) for _ in range(self.spec.pseudo_channels)]

    def cut(self, request: Request, now: int) -> list[tuple[int, Burst]]:
        size, found = self.spec.burst_bytes, []
        first = request.address // size
        last = (request.address + request.num_bytes - 1) // size
        for index in range(first, last + 1):
            channel, bank, row = place(self.spec, index * size)
            chunk = index * size // self.spec.interleave_bytes
            age = (now, self.rounds, request.access_id, chunk, index)
            found.append((channel, Burst(age, request.is_write, bank, row, now)))
        return found

    def take(self, request: Request, now: int) -> bool:
        """Accept an access if every queue has room for its part."""
        bursts = self.cut(request, now)
        name = "WR" if request.is_write else "RD"
        capacity = self.spec.read_queue_bursts
        if request.is_write:
            capacity = self.spec.write_queue_bursts
        for index, channel in enumerate(self.channels):
            part = sum(1 for where, _ in bursts if where == index)
            if part and len(channel.queued(name)) + part > capacity:
                return False
        self.bursts[request.access_id] = bursts
        for where, burst in bursts:
            self.channels[where].waiting.append(burst)
        return True

    def tick(self, now: int) -> None:
        for channel in self.channels:
            channel.tick(now)
        self.rounds += 1

    def served(self, access_id: int) -> Served:
        timing = self.spec.timing
        ends = []
        for where, burst in self.bursts[access_id]:
            assert burst.issued_ps is not None
            latency = timing.cwl_ps if burst.is_write else timing.cl_ps
            done = burst.issued_ps + latency + timing.bl_ps
            ends.append((done, -burst.age[3], where, burst))
        done, _, where, last = max(ends, key=lambda end: end[:2])
        assert last.issued_ps is not None
        blocked = sum(
            max(0, min(until, last.issued_ps) - max(since, last.accepted_ps))
            for since, until, banks in self.channels[where].windows
            if last.bank in banks
        )
        return Served(last.accepted_ps, done, blocked)


def run_bursts(spec: BankedSpec, load: list[Request], tick_ps: int = 1) -> Outcome:
    """Serve a load; all its times and those of the spec are multiples of ``tick_ps``."""
    model = MemoryModel(spec)
    coming = deque(sorted(load, key=attrgetter("arrive_ps")))
    door: deque[Request] = deque()
    now = 0
    while coming or door or any(channel.waiting for channel in model.channels):
        while coming and coming[0].arrive_ps <= now:
            door.append(coming.popleft())
        while door and model.take(door[0], now):
            door.popleft()
        model.tick(now)
        while door and model.take(door[0], now):
            door.popleft()
            while door and model.take(door[0], now):
                door.popleft()
            model.tick(now)
        now += tick_ps
    served = {request.access_id: model.served(request.access_id) for request in load}
    counters = tuple(channel.counters() for channel in model.channels)
    openings = tuple(
        tuple(channel.openings.get(bank, 0) for bank in range(spec.num_banks))
        for channel in model.channels
    )
    return Outcome(served, counters, openings)
