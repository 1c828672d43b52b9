"""Exchanges whose bytes lie apart: one row does what an exchange for each segment would."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.test_memory_server import FLIT_BYTES, PACKET_FLITS, engine_with
from tests.kinds import every_engine
from tests.oracles_hbm.loads import HBM4_CLOCKS, slice_spec, timing_of
from tilewright.engine import (
    Engine,
    EngineKind,
    EngineSpec,
    PacketView,
    ServerSpec,
    TaskGraph,
    build_engine,
)
from tilewright.errors import EngineError
from tilewright.units import MAX_PS

PACKET_BYTES = FLIT_BYTES * PACKET_FLITS
CAPACITY = 4096

segment_sizes = st.integers(1, 3 * PACKET_BYTES)
counts = st.integers(1, 6)
strides = st.integers(-300, 300)


def engine_with_gate(kind: EngineKind, *, writes: bool, window: int | None) -> tuple[Engine, int]:
    """A memory behind a link, and a round trip to it."""
    spec = slice_spec(timing_of(HBM4_CLOCKS, 500))
    engine, memory, _ = engine_with(kind, spec, CAPACITY)
    link = engine.add_server(ServerSpec("there", bytes_per_us=10**6, latency_ps=7))
    out, back = engine.add_route([link, memory]), engine.add_route(["link"])
    gate = None if window is None else engine.add_gate(window)
    return engine, engine.add_round_trip(out, back, gate=gate, writes=writes)


def shown(engine: Engine, graph: TaskGraph) -> tuple[Any, ...]:
    engine.set_trace(True)
    engine.submit(graph)
    engine.run()
    return (
        engine.take_trace(),
        engine.take_memory_trace(),
        engine.memory_counters(0),
        engine.statistics(),
    )


@every_engine
@given(
    segment_bytes=segment_sizes,
    count=counts,
    stride_bytes=strides,
    writes=st.booleans(),
    window=st.none() | st.integers(1, 5),
)
def test_segments_are_served_as_an_exchange_for_each_would_be(
    kind: EngineKind,
    segment_bytes: int,
    count: int,
    stride_bytes: int,
    writes: bool,
    window: int | None,
) -> None:
    whole, apart = TaskGraph(), TaskGraph()
    engine, trip = engine_with_gate(kind, writes=writes, window=window)
    whole.exchange(
        trip,
        count * segment_bytes,
        tag=2000,
        effect=1,
        served_effect=2,
        segment_bytes=segment_bytes,
        stride_bytes=stride_bytes,
    )
    found = shown(engine, whole)
    (served_ps, _), (end_ps, _) = sorted(engine.take_effects(), key=lambda pair: -pair[1])
    engine, trip = engine_with_gate(kind, writes=writes, window=window)
    for number in range(count):
        tag = 2000 + number * stride_bytes
        apart.exchange(trip, segment_bytes, tag=tag, effect=1, served_effect=2)
    assert found == shown(engine, apart)
    ends = engine.take_effects()
    assert served_ps == max(at_ps for at_ps, effect in ends if effect == 2)
    assert end_ps == max(at_ps for at_ps, effect in ends if effect == 1)


class Notebook:
    """A memory in Python that writes down what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, int]] = []

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:
        assert now_ps >= 0
        self.asked.append((packet.position, packet.tag + packet.offset_bytes, packet.num_bytes))
        return 1, 0


@every_engine
@given(segment_bytes=segment_sizes, count=counts, stride_bytes=strides)
def test_a_server_in_python_sees_where_each_packet_lies(
    kind: EngineKind, segment_bytes: int, count: int, stride_bytes: int
) -> None:
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, PACKET_FLITS))
    notebook = Notebook()
    engine.add_server(ServerSpec("memory", service=notebook))
    engine.add_server(ServerSpec("link", bytes_per_us=10**9))
    out, back = engine.add_route(["memory"]), engine.add_route(["link"])
    graph = TaskGraph()
    graph.exchange(
        engine.add_round_trip(out, back, writes=True),
        count * segment_bytes,
        tag=-5,
        segment_bytes=segment_bytes,
        stride_bytes=stride_bytes,
    )
    engine.submit(graph)
    engine.run()
    pieces = [
        (start - 5, min(PACKET_BYTES, segment_bytes - before))
        for number in range(count)
        for before in range(0, segment_bytes, PACKET_BYTES)
        for start in [number * stride_bytes + before]
    ]
    assert notebook.asked == [(place, *piece) for place, piece in enumerate(pieces)]
    assert engine.statistics().routes[0].bytes_in == count * segment_bytes


@every_engine
def test_ids_count_the_packets_of_all_segments(kind: EngineKind) -> None:
    engine, trip = engine_with_gate(kind, writes=False, window=1)
    graph = TaskGraph()
    graph.exchange(trip, 3 * (PACKET_BYTES + 1), segment_bytes=PACKET_BYTES + 1, stride_bytes=100)
    graph.timer()
    first_id = engine.submit(graph)
    assert engine.task_id(graph, first_id, 1) == first_id + 6


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "rest": (
        {"segment_bytes": 7},
        (
            "num_bytes = 30 with segment_bytes = 7, expected a multiple of segment_bytes; "
            "correct one of them"
        ),
    ),
    "nothing": (
        {"segment_bytes": 0},
        f"segment_bytes = 0, expected an int in 1..{MAX_PS}; correct segment_bytes",
    ),
    "no integer": (
        {"segment_bytes": 10, "stride_bytes": 1.5},
        (
            f"stride_bytes = 1.5, expected an int in {-MAX_PS}..{MAX_PS} (no bool, no NumPy "
            "scalar); correct stride_bytes"
        ),
    ),
    "least stride": (
        {"segment_bytes": 10, "stride_bytes": -(2**63)},
        f"stride_bytes = {-(2**63)}, expected an int in {-MAX_PS}..{MAX_PS}; correct stride_bytes",
    ),
    "far": (
        {"segment_bytes": 10, "stride_bytes": -(2**62)},
        (
            f"3 segments with stride_bytes = {-(2**62)}, expected a reach of at most {MAX_PS} "
            "bytes; correct stride_bytes"
        ),
    ),
    "last one outside": (
        {"segment_bytes": 10, "stride_bytes": 2044, "tag": 0},
        "address (tag) 0, expected an access inside memory 'memory'; correct the tag or the bytes",
    ),
    "before the memory": (
        {"segment_bytes": 10, "stride_bytes": -50, "tag": 99},
        "address (tag) 99, expected an access inside memory 'memory'; correct the tag or the bytes",
    ),
}


@every_engine
@pytest.mark.parametrize("case", REFUSED)
def test_wrong_segments_are_refused_in_the_same_words(kind: EngineKind, case: str) -> None:
    fields, message = REFUSED[case]
    engine, trip = engine_with_gate(kind, writes=False, window=None)
    graph = TaskGraph()
    graph.exchange(trip, 30, **fields)
    with pytest.raises(EngineError) as caught:
        engine.submit(graph)
    assert str(caught.value) == f"task graph, task 0: found {message}"


@every_engine
def test_the_outermost_segments_are_taken(kind: EngineKind) -> None:
    for tag, stride_bytes in ((0, 2043), (CAPACITY - 10, -2043), (CAPACITY - 10, 0)):
        engine, trip = engine_with_gate(kind, writes=False, window=None)
        graph = TaskGraph()
        graph.exchange(trip, 30, tag=tag, segment_bytes=10, stride_bytes=stride_bytes)
        engine.submit(graph)
        engine.run()
        assert engine.now_ps > 0


def test_a_stride_without_segments_is_refused() -> None:
    graph = TaskGraph()
    with pytest.raises(EngineError, match="task 0: found stride_bytes = 4 without segment_bytes"):
        graph.exchange(0, 64, stride_bytes=4)
    assert len(graph) == 0
