"""Transfers over links, for an engine as they are and for the flit oracle cut into packets."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tests.engine_programs import rate_of
from tests.strategies import Choices, pick
from tilewright.engine import (
    Arbitration,
    Engine,
    EngineKind,
    EngineSpec,
    ServerSpec,
    TaskGraph,
    build_engine,
)
from tilewright.errors import DeadlockError
from tilewright.validation.workload import LinkSpec, Message, NetworkLoad

__all__ = ("LoadRun", "Transfer", "TransferLoad", "load_of", "random_load", "run_load")

FLIT_BYTES = 64


@dataclass(frozen=True, slots=True)
class Transfer:
    """So many flits that enter at one time."""

    at_ps: int
    links: tuple[int, ...]
    channels: tuple[int, ...]
    flits: int


@dataclass(frozen=True)
class TransferLoad:
    """Open loop; the place of a packet among all packets is its id, for engine and oracle."""

    links: tuple[LinkSpec, ...]
    transfers: tuple[Transfer, ...]
    packet_flits: int

    @cached_property
    def packets(self) -> NetworkLoad:
        messages: list[Message] = []
        for transfer in self.transfers:
            for sent in range(0, transfer.flits, self.packet_flits):
                flits = min(self.packet_flits, transfer.flits - sent)
                fields = (transfer.at_ps, transfer.links, transfer.channels, flits)
                messages.append(Message(len(messages), *fields))
        return NetworkLoad(self.links, tuple(messages))


def load_of(load: NetworkLoad) -> TransferLoad:
    """Every message as a transfer of one packet."""
    messages = sorted(load.messages, key=lambda message: message.message_id)
    assert [message.message_id for message in messages] == list(range(len(messages)))
    transfers = [Transfer(m.at_ps, m.links, m.channels, m.flits) for m in messages]
    packet_flits = max(message.flits for message in messages)
    return TransferLoad(load.links, tuple(transfers), packet_flits)


def server_of(link: LinkSpec, name: str) -> ServerSpec:
    return ServerSpec(
        name,
        bytes_per_us=rate_of(link.flit_ps, FLIT_BYTES),
        latency_ps=link.latency_ps,
        buffer_flits=link.buffer_flits,
        credit_ps=link.credit_ps,
        arbitration=Arbitration.ROUND_ROBIN if link.round_robin else Arbitration.FIFO,
        reassemble=link.reassemble,
    )


@dataclass(frozen=True, slots=True)
class LoadRun:
    """When packets left their last link behind them, and when they started on each hop."""

    delivered_ps: Mapping[int, int]
    starts_ps: Mapping[tuple[int, int], int]  # by (packet, hop)
    ends_ps: Mapping[int, int]  # of whole transfers
    is_deadlock: bool
    engine: Engine


def run_load(load: TransferLoad, kind: EngineKind) -> LoadRun:
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, load.packet_flits))
    for index, link in enumerate(load.links):
        engine.add_server(server_of(link, f"{index}.{link.name}"))
    routes: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    for transfer in load.transfers:
        key = transfer.links, transfer.channels
        if key not in routes:
            routes[key] = engine.add_route(*key)
    graph = TaskGraph()
    graph.transfers(
        [routes[transfer.links, transfer.channels] for transfer in load.transfers],
        num_bytes=[transfer.flits * FLIT_BYTES for transfer in load.transfers],
        delays_ps=[transfer.at_ps for transfer in load.transfers],
        effects=range(len(load.transfers)),
    )
    engine.set_trace(True)
    engine.submit(graph)
    is_deadlock = False
    try:
        engine.run()
    except DeadlockError:
        is_deadlock = True
    return _gathered(load, engine, is_deadlock=is_deadlock)


def _gathered(load: TransferLoad, engine: Engine, *, is_deadlock: bool) -> LoadRun:
    messages = load.packets.messages
    hops: dict[int, int] = defaultdict(int)
    starts_ps: dict[tuple[int, int], int] = {}
    delivered_ps: dict[int, int] = {}
    for record in engine.take_trace():
        hop = hops[record.packet_id]
        links = messages[record.packet_id].links
        assert record.server == links[hop]
        starts_ps[record.packet_id, hop] = record.start_ps
        hops[record.packet_id] += 1
        if hop + 1 == len(links):
            delivered_ps[record.packet_id] = record.tail_ps + load.links[links[hop]].latency_ps
    ends_ps = {effect: end_ps for end_ps, effect in engine.take_effects()}
    return LoadRun(delivered_ps, starts_ps, ends_ps, is_deadlock, engine)


MAX_LINKS = 5
MAX_HOPS = 5
MAX_TRANSFERS = 14


def random_load(choices: Choices, *, arbitrated: bool) -> TransferLoad:
    """A crowd on a few links of mixed speed; if arbitrated, with everything that can stall."""
    packet_flits = choices.integer(1, 6)

    def link() -> LinkSpec:
        spare_flits = pick(choices, [None, 0, 0, 1, packet_flits]) if arbitrated else None
        return LinkSpec(
            "link",
            flit_ps=pick(choices, [1, 1, 2, 3, 5]),
            latency_ps=pick(choices, [0, 1, 2, 5]),
            buffer_flits=None if spare_flits is None else packet_flits + spare_flits,
            credit_ps=pick(choices, [0, 1, 4]),
            round_robin=arbitrated and pick(choices, [False, True]),
            reassemble=pick(choices, [False, False, True]),
        )

    links = [link() for _ in range(choices.integer(1, MAX_LINKS))]
    num_channels = choices.integer(1, 3) if arbitrated else 1
    is_one_way = choices.integer(0, 2) > 0

    def transfer() -> Transfer:
        path = [choices.integer(0, len(links) - 1) for _ in range(choices.integer(1, MAX_HOPS))]
        if is_one_way:
            path = sorted(set(path))
        channels = [choices.integer(0, num_channels - 1) for _ in path]
        flits = choices.integer(1, 3 * packet_flits)
        return Transfer(choices.integer(0, 25), tuple(path), tuple(channels), flits)

    transfers = [transfer() for _ in range(choices.integer(1, MAX_TRANSFERS))]
    return TransferLoad(tuple(links), tuple(transfers), packet_flits)
