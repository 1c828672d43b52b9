"""The longest way through a plan: which messages, links and sums its end waits for.

A plan is walked as its kernel runs it, turn after turn, with the times of ``cost`` in the place of
events: a block is sent when the rank has it and its link is free, and summed when it has come.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from tilewright.collectives.cost import LanePlan, PeCost
from tilewright.collectives.plan import Move
from tilewright.collectives.schedule import Message, lag_of
from tilewright.collectives.tuning import Tuning


@dataclass(frozen=True, slots=True)
class Prediction:
    """Of one algorithm, in picoseconds: what its longest way is made of."""

    algorithm: str
    alpha_ps: int
    beta_ps: int
    gamma_ps: int

    @property
    def total_ps(self) -> int:
        return self.alpha_ps + self.beta_ps + self.gamma_ps


Steps = Sequence[tuple[int, Message]]
"""Ranks and their messages of one wave."""

Moment = tuple[int, int, int, int]
"""A time, and the latencies, bytes on links and bytes in PEs that it is the sum of."""

START: Moment = (0, 0, 0, 0)
END_OF_TIME = 2**63 - 1  # a group that all others are before
MOST_WALKS = 4  # of lanes whose plans differ; links are shared by all of them anyway


def predict(
    algorithm: str,
    lanes: Sequence[LanePlan],
    shard_bytes: int,
    element_bytes: int,
    tuning: Tuning,
) -> Prediction:
    """Of shards that are cut into rounds, and blocks into chunks of at most so many bytes.

    The first chunks of all blocks take the longest way of one chunk; the others follow as fast as
    the busiest link lets them.
    """
    if not lanes or not lanes[0].plan.num_turns or not shard_bytes:
        return Prediction(algorithm, 0, 0, 0)
    num_rounds = -(-shard_bytes // tuning.round_bytes)
    part_bytes = -(-shard_bytes // num_rounds)
    block_bytes = -(-part_bytes // lanes[0].plan.num_blocks)
    num_chunks = -(-block_bytes // max(1, min(tuning.chunk_bytes, block_bytes)))
    num_bytes = -(-block_bytes // num_chunks)
    _, alpha_ps, beta_ps, gamma_ps = max(
        _Walk(lane, num_bytes, element_bytes, tuning).end() for lane in lanes[:MOST_WALKS]
    )
    behind_ps = int(lanes[0].busiest * part_bytes) * (num_chunks - 1) // num_chunks
    return Prediction(
        algorithm,
        num_rounds * alpha_ps,
        num_rounds * (beta_ps + behind_ps),
        num_rounds * gamma_ps,
    )


def _after(start: Moment, alpha: int = 0, beta: int = 0, gamma: int = 0) -> Moment:
    total, alphas, betas, gammas = start
    return total + alpha + beta + gamma, alphas + alpha, betas + beta, gammas + gamma


class _Registers:
    """Of a rank: bytes are taken in the order in which they are let go, and free a while later."""

    def __init__(self, capacity_bytes: int) -> None:
        self.free_bytes = capacity_bytes
        self._fresh_bytes = capacity_bytes
        self._released: deque[tuple[int, Moment]] = deque()

    def take(self, num_bytes: int) -> Moment:
        """When so many bytes may be written."""
        self.free_bytes -= num_bytes
        missing = max(0, num_bytes - self._fresh_bytes)
        self._fresh_bytes -= num_bytes - missing
        moment = START
        while missing:
            released, free = self._released.popleft()
            moment = max(moment, free)
            if released > missing:
                self._released.appendleft((released - missing, free))
            missing -= min(missing, released)
        return moment

    def give(self, num_bytes: int, free: Moment) -> None:
        if num_bytes:
            self.free_bytes += num_bytes
            self._released.append((num_bytes, free))


@dataclass(slots=True)
class _Held:
    """A block that a rank has: when it is there, its bytes in registers, the end of its uses."""

    ready: Moment
    near_bytes: int = 0
    used: Moment = START


class _Rank:
    """Where a rank's program is, and when its parts are free."""

    def __init__(self, cost: PeCost) -> None:
        self.program = START
        self.exits: dict[int, Moment] = {}  # when the last message of each has left
        self.read_port = START
        self.write_port = START
        self.loads = _after(START, cost.issue_ps + cost.dispatch_ps + cost.load_ps)
        self.stores = START
        self.registers = _Registers(cost.register_bytes)
        self.held: dict[int, _Held] = {}
        self.coming: dict[int, deque[tuple[Message, Moment]]] = {}


class _Walk:
    """When ranks are where, while a plan goes on with blocks of one size."""

    def __init__(self, lane: LanePlan, num_bytes: int, element_bytes: int, tuning: Tuning) -> None:
        cost = lane.cost
        self._lane = lane
        self._lead = tuning.lead
        self._cost = cost
        self._num_bytes = num_bytes  # of a block
        self._vector_ps = int(num_bytes * (cost.vector / element_bytes))
        self._memory_ps = int(num_bytes * cost.memory)
        self._beside_ps = int(num_bytes * lane.load_beside)
        self._latencies = {
            pair: way.latency_ps(num_bytes, tuning.ring, cost) for pair, way in lane.ways.items()
        }
        self._ranks = [_Rank(cost) for _ in range(lane.plan.num_ranks)]
        self._end = START

    def end(self) -> Moment:
        """When the last result is in memory."""
        lag = lag_of(self._lane.plan, self._lead)
        for group, of_group in groupby(
            self._lane.waves(self._lead), lambda wave: wave[0][1].wave.group
        ):
            waves = list(of_group)
            for number, step in chain.from_iterable(waves):  # before what others are combined with
                rank, block = self._ranks[number], step.chunk.start
                if step.move is Move.SEND and block not in rank.coming:
                    self._value(rank, block, self._memory_ps)
            for wave in waves:
                self._run_wave(wave)
            for rank in self._ranks:
                self._settle(rank, list(rank.coming), group - lag)
        for rank in self._ranks:
            self._settle(rank, list(rank.coming), END_OF_TIME)
        return self._end

    def _run_wave(self, steps: Steps) -> None:
        """As the kernel: a block is sent when it has come."""
        arrived = {
            (number, step.peer, step.chunk.start): self._send(number, step)
            for number, step in steps
            if step.move is Move.SEND
        }
        for number, step in steps:
            rank, block = self._ranks[number], step.chunk.start
            if step.move is Move.COMBINE:
                self._value(rank, block, self._beside_ps)
            if step.move is not Move.SEND:
                moment = arrived[step.peer, number, block]
                rank.coming.setdefault(block, deque()).append((step, moment))

    def _send(self, number: int, step: Message) -> Moment:
        """When the block has come to the peer."""
        rank, block = self._ranks[number], step.chunk.start
        self._settle(rank, [block], step.wave.group)
        held = self._value(rank, block, self._memory_ps)
        ready = self._in_memory(rank, held)
        share = self._lane.shares[step.wave.turn, number, step.peer]
        start = max(ready, rank.exits.get(share.exit, START))
        left = rank.exits[share.exit] = _after(start, beta=int(self._num_bytes * share.byte))
        arrived = _after(left, self._latencies[number, step.peer])
        held.used = max(held.used, arrived)
        if step.is_last_use:
            self._store(rank, held)
        if step.is_last_use or step.is_replaced:
            self._let_go(rank, block)
        return arrived

    def _settle(self, rank: _Rank, blocks: Sequence[int], group: int) -> None:
        """The program waits for what these blocks receive before a group."""
        for block in blocks:
            coming = rank.coming.get(block, deque())
            while coming and coming[0][0].wave.group < group:
                step, moment = coming.popleft()
                arrived = max(moment, rank.read_port)  # its last fragment is read
                rank.program = max(rank.program, arrived)
                if step.move is Move.COMBINE:
                    held = self._combined(rank, rank.held[block], _Held(arrived))
                else:
                    held = _Held(arrived)
                self._let_go(rank, block)
                rank.held[block] = held
                if step.is_last_use:
                    self._store(rank, held)
                    self._let_go(rank, block)
            if not coming:
                rank.coming.pop(block, None)

    def _combined(self, rank: _Rank, own: _Held, received: _Held) -> _Held:
        """The sum, in registers as far as there is room."""
        cost, registers = self._cost, rank.registers
        rank.program = _after(rank.program, cost.issue_ps)
        fetched = max(self._fetched(rank, own), self._fetched(rank, received))
        near_bytes = min(self._num_bytes, registers.free_bytes)
        start = max(fetched, registers.take(near_bytes))
        done = _after(start, cost.dispatch_ps, gamma=self._vector_ps)
        registers.give(received.near_bytes, done)
        own.used = max(own.used, done)
        spilled = self._num_bytes - near_bytes
        return _Held(self._written(rank, done, spilled) if spilled else done, near_bytes)

    def _fetched(self, rank: _Rank, held: _Held) -> Moment:
        """What is not in registers comes through the read port; it stays if there is room."""
        cost, num_bytes = self._cost, self._num_bytes
        missing = num_bytes - held.near_bytes
        if not missing:
            return held.ready
        start = max(rank.program, held.ready)
        if not held.near_bytes:
            held.near_bytes = min(num_bytes, rank.registers.free_bytes)
            start = max(start, rank.registers.take(held.near_bytes))
        start = max(_after(start, cost.dispatch_ps), rank.read_port)
        rank.read_port = _after(start, gamma=int(missing * cost.read))
        return rank.read_port

    def _written(self, rank: _Rank, ready: Moment, num_bytes: int) -> Moment:
        start = max(_after(ready, self._cost.dispatch_ps), rank.write_port)
        rank.write_port = _after(start, gamma=int(num_bytes * self._cost.write))
        return rank.write_port

    def _in_memory(self, rank: _Rank, held: _Held) -> Moment:
        """When a block is where it can be sent or stored from: all of it in the TCM."""
        rank.program = _after(rank.program, self._cost.issue_ps)
        ready = max(rank.program, held.ready)
        return self._written(rank, ready, self._num_bytes) if held.near_bytes else ready

    def _let_go(self, rank: _Rank, block: int) -> None:
        held = rank.held.pop(block, None)
        if held is not None:
            rank.registers.give(held.near_bytes, max(held.ready, held.used))

    def _value(self, rank: _Rank, block: int, load_ps: int) -> _Held:
        """A block that a rank has; one that it has not received comes from memory."""
        if block not in rank.held:
            rank.loads = _after(rank.loads, gamma=load_ps)
            rank.held[block] = _Held(rank.loads)
        return rank.held[block]

    def _store(self, rank: _Rank, held: _Held) -> None:
        start = _after(self._in_memory(rank, held), self._cost.dispatch_ps)
        rank.stores = _after(max(start, rank.stores), gamma=self._memory_ps)
        held.used = max(held.used, rank.stores)
        self._end = max(self._end, _after(rank.stores, self._cost.store_ps))
