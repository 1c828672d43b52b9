"""Network loads as plain data: what an engine, an oracle and a peer are all given to run.

The builders make the loads of the speed benchmark. Nothing here knows how time passes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.errors import SpecError
from tilewright.validation.network import Network, Route

ID_STRIDE = 2**40  # ids of one owner; docs/engine.md, section 1


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """A server with a wire, in the terms of docs/engine.md, section 2."""

    name: str
    flit_ps: int
    latency_ps: int
    buffer_flits: int | None = None
    credit_ps: int = 0
    round_robin: bool = False
    reassemble: bool = False

    def __post_init__(self) -> None:
        if self.flit_ps < 1:
            raise SpecError(self.name, f"flit_ps {self.flit_ps}", "at least 1", "slow the link")
        if min(self.latency_ps, self.credit_ps) < 0:
            found = f"latency_ps {self.latency_ps}, credit_ps {self.credit_ps}"
            raise SpecError(self.name, found, "no negative time", "correct it")

    @property
    def arbitrates(self) -> bool:
        """Whether its packets may start in another order than they got ready."""
        return self.round_robin or self.buffer_flits is not None


def alone_ps(links: Sequence[LinkSpec], flits: int) -> int:
    """Return what a packet takes that goes alone over links which pass it on as it comes."""
    head_ps = sum(link.flit_ps + link.latency_ps for link in links)
    return head_ps + (flits - 1) * max(link.flit_ps for link in links)


@dataclass(frozen=True, slots=True)
class Message:
    """One packet of ``flits`` that enters at ``at_ps``; a virtual channel for each link."""

    message_id: int
    at_ps: int
    links: Route
    channels: Route
    flits: int


@dataclass(frozen=True, slots=True)
class NetworkLoad:
    """Open loop: every message enters at its own time, whatever the network does."""

    links: tuple[LinkSpec, ...]
    messages: tuple[Message, ...]

    def __post_init__(self) -> None:
        if len({message.message_id for message in self.messages}) < len(self.messages):
            raise SpecError("load", "a message id twice", "unique ids", "number the messages")
        for message in self.messages:
            check_message(self.links, message)

    @property
    def num_hops(self) -> int:
        return sum(len(message.links) for message in self.messages)

    @property
    def arbitrates(self) -> bool:
        return any(link.arbitrates for link in self.links)


@dataclass(frozen=True, slots=True)
class ReadStep:
    """A request of one flit, its response at once on arrival, then ``compute_ps`` of work."""

    request_links: Route
    response_links: Route
    response_flits: int
    compute_ps: int


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """Programs that each do their steps one after the other, all from time 0."""

    links: tuple[LinkSpec, ...]
    programs: tuple[tuple[ReadStep, ...], ...]

    @property
    def num_hops(self) -> int:
        steps = [step for program in self.programs for step in program]
        return sum(len(step.request_links) + len(step.response_links) for step in steps)


def request_id(program: int, step: int) -> int:
    return program * ID_STRIDE + 2 * step


def response_id(program: int, step: int) -> int:
    return program * ID_STRIDE + 2 * step + 1


def check_message(links: Sequence[LinkSpec], message: Message) -> None:
    where = f"message {message.message_id}"
    if not message.links or len(message.channels) != len(message.links):
        found = f"{len(message.links)} links and {len(message.channels)} channels"
        raise SpecError(where, found, "a channel for each of its links", "give it a route")
    if message.flits < 1 or message.at_ps < 0:
        found = f"{message.flits} flits at {message.at_ps} ps"
        raise SpecError(where, found, "at least one flit, from time 0 on", "correct it")
    for link_index in message.links[:-1]:
        space = links[link_index].buffer_flits
        if space is not None and space < message.flits:
            found = f"{message.flits} flits for a buffer of {space}"
            fix = f"enlarge {links[link_index].name}"
            raise SpecError(where, found, "buffers that hold the whole packet", fix)


@dataclass(frozen=True, slots=True)
class MeshSpec:
    """A square mesh, XY routing, with a slow boundary between the two middle columns."""

    side: int
    unit_ps: int = 250
    fast_units: tuple[int, int] = (1, 3)  # flit time and latency
    slow_units: tuple[int, int] = (2, 20)
    buffer_flits: int | None = None
    credit_units: int = 3
    round_robin: bool = False

    @property
    def num_nodes(self) -> int:
        return self.side**2

    @property
    def slow_flit_ps(self) -> int:
        return self.slow_units[0] * self.unit_ps

    def link(self, name: str, *, slow: bool) -> LinkSpec:
        flit_units, latency_units = self.slow_units if slow else self.fast_units
        return LinkSpec(
            name=name,
            flit_ps=flit_units * self.unit_ps,
            latency_ps=latency_units * self.unit_ps,
            buffer_flits=self.buffer_flits,
            credit_ps=self.credit_units * self.unit_ps,
            round_robin=self.round_robin,
        )


class Mesh:
    """The links of a mesh and the routes over them; node ``y * side + x`` is at (x, y)."""

    def __init__(self, spec: MeshSpec) -> None:
        side = spec.side
        network, boundary = Network(side, side), {side // 2 - 1, side // 2}
        self.route = network.route
        self.links = tuple(
            spec.link(
                f"mesh.x{at % side}y{at // side}.x{to % side}y{to // side}",
                slow={at % side, to % side} == boundary,
            )
            for at, to in network.wires
        )


@dataclass(frozen=True, slots=True)
class PerNode:
    """An injection rate: the same load per node on meshes of any size."""

    flits_per_us: float


def messages_per_ps(spec: MeshSpec, load: float | PerNode, mean_flits: float) -> float:
    """Of all nodes together; a plain number is the share of the bisection that is used."""
    if isinstance(load, PerNode):
        return load.flits_per_us * 1e-6 * spec.num_nodes / mean_flits
    left = spec.side * (spec.side // 2)
    right = spec.num_nodes - left
    crossing = left * right / (spec.num_nodes * (spec.num_nodes - 1))  # in one direction
    return load * spec.side / spec.slow_flit_ps / mean_flits / crossing


def mesh_load(
    mesh: MeshSpec,
    num_messages: int,
    load: float | PerNode,
    seed: int,
    *,
    flits: tuple[int, int] = (4, 64),
) -> NetworkLoad:
    """Poisson arrivals, uniform sources and targets (never the same), uniform sizes.

    >>> tiny = mesh_load(MeshSpec(side=4), num_messages=100, load=0.5, seed=1)
    >>> len(tiny.links), len(tiny.messages)
    (48, 100)
    """
    generator = np.random.default_rng(seed)
    rate = messages_per_ps(mesh, load, mean_flits=sum(flits) / 2)
    at_ps = np.cumsum(generator.exponential(1 / rate, num_messages)).astype(np.int64)
    sources = generator.integers(0, mesh.num_nodes, num_messages)
    targets = other_nodes(generator, sources, mesh.num_nodes)
    sizes = generator.integers(flits[0], flits[1] + 1, num_messages)
    network = Mesh(mesh)
    messages: list[Message] = []
    columns = (at_ps.tolist(), sources.tolist(), targets.tolist(), sizes.tolist())
    for message_id, (at, source, target, size) in enumerate(zip(*columns, strict=True)):
        route = network.route(source, target)
        messages.append(Message(message_id, at, route, (0,) * len(route), size))
    return NetworkLoad(network.links, tuple(messages))


def closed_loop(
    mesh: MeshSpec,
    steps: int,
    seed: int,
    *,
    flits: tuple[int, int] = (4, 64),
    compute_ps: tuple[int, int] = (5_000, 50_000),
) -> ClosedLoop:
    """A program on every node that reads from random other nodes and computes in between."""
    generator = np.random.default_rng(seed)
    shape = (mesh.num_nodes, steps)
    sources = np.broadcast_to(np.arange(mesh.num_nodes)[:, None], shape)
    targets = other_nodes(generator, sources, mesh.num_nodes).tolist()
    sizes = generator.integers(flits[0], flits[1] + 1, shape).tolist()
    works = generator.integers(compute_ps[0], compute_ps[1] + 1, shape).tolist()
    network = Mesh(mesh)
    programs = tuple(
        tuple(
            ReadStep(network.route(node, target), network.route(target, node), size, work)
            for target, size, work in zip(targets[node], sizes[node], works[node], strict=True)
        )
        for node in range(mesh.num_nodes)
    )
    return ClosedLoop(network.links, programs)


def other_nodes(generator: np.random.Generator, nodes: np.ndarray, num_nodes: int) -> np.ndarray:
    """For each node another one, uniformly."""
    others = generator.integers(0, num_nodes - 1, nodes.shape)
    return others + (others >= nodes)
