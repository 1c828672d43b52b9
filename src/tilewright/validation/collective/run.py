"""Plans of collectives on an engine: messages over wires, sums of ranks."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.collectives.plan import Move, Plan
from tilewright.engine import Engine, EngineKind, EngineSpec, ServerSpec, TaskGraph, build_engine
from tilewright.errors import InternalError
from tilewright.validation.engine_run import finish, route_over
from tilewright.validation.network import Network


@dataclass(frozen=True, slots=True)
class Wiring:
    """What all wires and ranks of a run have in common."""

    latency_ps: int  # of a wire, from the last flit's departure to its arrival
    bytes_per_us: int
    sum_ps_per_kib: int = 0  # of bytes that a rank combines
    flit_bytes: int = 64
    packet_flits: int = 64


def run_plans(
    kind: EngineKind,
    network: Network,
    wiring: Wiring,
    plans: Sequence[Plan],
    num_bytes: int,
    *,
    nodes: Sequence[int] | None = None,
) -> int:
    """Picoseconds until all ranks are done. Plans share the buffer of ``num_bytes`` evenly.

    Rank r is at node ``nodes[r]``, or at node r. What a rank sends to another in one turn is one
    message. It begins when what it carries is there, and when what its rank sent in the turn before
    has arrived: ranks send one turn after the other.
    """
    engine = build_engine(kind, EngineSpec(wiring.flit_bytes, wiring.packet_flits))
    board = _Board(engine, network, wiring, nodes or range(network.num_nodes))
    for plan in plans:
        block_bytes, rest = divmod(num_bytes, len(plans) * plan.num_blocks)
        if rest:
            found = f"{num_bytes} bytes for {len(plans)} x {plan.num_blocks} blocks"
            raise InternalError("collective oracle", found, "whole blocks", "take a multiple")
        board.add(plan, block_bytes)
    return finish(engine, board.graph)


Messages = dict[tuple[int, int], list[tuple[Move, int]]]
"""By sender and receiver: what the receiver does with which blocks."""


def _messages_by_turn(plan: Plan) -> list[Messages]:
    turns: list[Messages] = [defaultdict(list) for _ in range(plan.num_turns)]
    for rank, steps in enumerate(plan.steps):
        for step in steps:
            if step.move is not Move.SEND:
                turns[step.turn][step.peer, rank].append((step.move, step.block))
    return turns


class _Board:
    """Wires and units as servers, and the task graph of all messages."""

    def __init__(
        self, engine: Engine, network: Network, wiring: Wiring, nodes: Sequence[int]
    ) -> None:
        self.graph = TaskGraph()
        self._engine, self._network, self._wiring, self._nodes = engine, network, wiring, nodes
        for one, other in network.wires:
            name = f"{one} to {other}"
            engine.add_server(ServerSpec(name, wiring.bytes_per_us, latency_ps=wiring.latency_ps))
        self._units = [route_over(engine, ServerSpec(f"sums of {node}")) for node in nodes]
        self._routes: dict[tuple[int, int], int] = {}

    def add(self, plan: Plan, block_bytes: int) -> None:
        there: dict[tuple[int, int], tuple[int, ...]] = defaultdict(tuple)  # by rank and block
        sent: dict[int, tuple[int, ...]] = defaultdict(tuple)  # by rank, in the turn before
        for blocks in _messages_by_turn(plan):
            tasks = {
                pair: self._message(pair, block_bytes * len(moved), [
                    *sent[pair[0]], *(task for _, block in moved for task in there[pair[0], block])
                ])
                for pair, moved in blocks.items()
            }  # fmt: skip
            sent = defaultdict(tuple)
            for (source, target), task in tasks.items():
                sent[source] += (task,)
                self._receive(target, task, blocks[source, target], block_bytes, there)

    def _message(self, pair: tuple[int, int], num_bytes: int, after: Sequence[int]) -> int:
        if pair not in self._routes:
            wires = self._network.route(*(self._nodes[rank] for rank in pair))
            self._routes[pair] = self._engine.add_route(wires, (0,) * len(wires))
        return self.graph.transfer(self._routes[pair], num_bytes, after=tuple(set(after)))

    def _receive(
        self,
        rank: int,
        task: int,
        moved: Sequence[tuple[Move, int]],
        block_bytes: int,
        there: dict[tuple[int, int], tuple[int, ...]],
    ) -> None:
        combined = [block for move, block in moved if move is Move.COMBINE]
        after = {task, *(before for block in combined for before in there[rank, block])}
        hold_ps = len(combined) * block_bytes * self._wiring.sum_ps_per_kib // 1024
        if hold_ps:
            summed = self.graph.hold(self._units[rank], hold_ps, after=tuple(after))
            after = {summed}
        for move, block in moved:
            there[rank, block] = tuple(after) if move is Move.COMBINE else (task,)
