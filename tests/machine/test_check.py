from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.device.build import build_device
from tilewright.device.dma import Access
from tilewright.engine import (
    Arbitration,
    EngineKind,
    EngineSpec,
    ServerSpec,
    TaskGraph,
    build_engine,
)
from tilewright.errors import SpecError
from tilewright.machine.build import build_machine, machine_hash
from tilewright.machine.check import (
    check_machine_file,
    credit_round_trip_ps,
    needed_buffer_bytes,
    warnings_of,
)
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import Link, LinkKind
from tilewright.machine.parse import parse_machine
from tilewright.machine.spec import (
    CubeSpec,
    DmaSpec,
    FabricSpec,
    HbmSpec,
    HostSpec,
    MachineSpec,
    MeshSpec,
    PcieSpec,
    PeSpec,
    SipSpec,
    SramSpec,
    UcieSpec,
)
from tilewright.memory.address import MemoryKind

PACKET_BYTES, FLIT_BYTES = 512, 64


def link(bytes_per_us: int, latency_ps: int, credit_ps: int, *, reassemble: bool) -> Link:
    return Link(
        0, 1, LinkKind.NETWORK, bytes_per_us, latency_ps, 0, PACKET_BYTES, credit_ps, reassemble
    )


links = st.builds(
    link,
    st.sampled_from((64_000, 128_000, 256_000)),
    st.integers(1, 20_000),
    st.integers(0, 20_000),
    reassemble=st.booleans(),
)


def stream_ps(first: Link, second: Link, buffer_packets: int | None) -> int:
    """When 40 packets have passed two links with so much buffer between them."""
    num_flits = PACKET_BYTES // FLIT_BYTES
    engine = build_engine(
        EngineKind.REFERENCE, EngineSpec(flit_bytes=FLIT_BYTES, packet_flits=num_flits)
    )
    for name, each, packets in (("first", first, buffer_packets), ("second", second, None)):
        engine.add_server(
            ServerSpec(
                name,
                bytes_per_us=each.bytes_per_us,
                latency_ps=each.latency_ps,
                buffer_flits=None if packets is None else packets * num_flits,
                credit_ps=each.credit_ps,
                arbitration=Arbitration.ROUND_ROBIN,
                reassemble=each.reassemble,
            )
        )
    graph = TaskGraph()
    route = engine.add_route(["first", "second"])
    graph.transfer(route, num_bytes=40 * PACKET_BYTES, effect=0)
    engine.submit(graph)
    engine.run()
    [(end_ps, _)] = engine.take_effects()
    return end_ps


@settings(max_examples=60)
@given(first=links, second=links)
def test_the_needed_buffer_is_the_least_that_keeps_the_full_rate(first: Link, second: Link) -> None:
    needed = needed_buffer_bytes(first, second, packet_bytes=PACKET_BYTES, flit_bytes=FLIT_BYTES)
    packets = needed // PACKET_BYTES
    assert needed == packets * PACKET_BYTES
    best_ps = stream_ps(first, second, None)
    assert stream_ps(first, second, packets) == best_ps
    if 1 < packets < 30:
        assert stream_ps(first, second, packets - 1) > best_ps


def test_a_round_trip_is_latency_flits_at_both_links_and_the_credits_way_back() -> None:
    plain = link(64_000, 10_000, 3_000, reassemble=False)
    whole = link(128_000, 1, 1, reassemble=True)
    through = link(128_000, 1, 1, reassemble=False)
    words = {"num_flits": 8, "flit_bytes": 64}
    assert credit_round_trip_ps(plain, whole, **words) == 10_000 + 8_000 + 4_000 + 3_000
    assert credit_round_trip_ps(plain, through, **words) == 10_000 + 8_000 + 500 + 3_000


@pytest.mark.parametrize(
    ("spec", "start"),
    [
        (
            MachineSpec(cube=CubeSpec(noc=MeshSpec(buffer_bytes=1_024))),
            "cube.noc.buffer_bytes: found 1 KiB, needed 2 KiB",
        ),
        (  # 8 + 200.01 + 8 + 0.01 ns at 128 GB/s
            MachineSpec(cube=CubeSpec(ucie=UcieSpec(side_ps=200_000))),
            "cube.ucie.buffer_bytes: found 8 KiB, needed 28 KiB",
        ),
        (  # 300 + 100 + 8.5 + 300 ns at 128 GB/s
            MachineSpec(fabric=FabricSpec(latency_ps=300_000)),
            "fabric.buffer_bytes: found 64 KiB, needed 89 KiB",
        ),
        (  # 101 + 2 x 17.776 + 1 ns at a packet per 17.776 ns
            MachineSpec(host=HostSpec(pcie=PcieSpec(buffer_bytes=4_096))),
            "host.pcie.buffer_bytes: found 4 KiB, needed 8 KiB",
        ),
        (  # ten links there and back, 30.5 ns of HBM: 57.71 ns at 256 GB/s
            MachineSpec(pe=PeSpec(dma=DmaSpec(in_flight_bytes=8_192))),
            "pe.dma.in_flight_bytes: found 8 KiB, needed 14.428 KiB",
        ),
        (
            MachineSpec(pe=PeSpec(dma=DmaSpec(in_flight_bytes=2_048, read_channels=7))),
            "pe.dma.in_flight_bytes: found 7 x 2 KiB, needed 14.428 KiB",
        ),
        (
            MachineSpec(host=HostSpec(in_flight_bytes=16_384)),
            "host.in_flight_bytes: found 16 KiB, needed 28.193 KiB",
        ),
        (  # what is written needs less, but has one channel
            MachineSpec(pe=PeSpec(dma=DmaSpec(in_flight_bytes=4_096, read_channels=8))),
            "pe.dma.in_flight_bytes: found 4 KiB, needed 10.678 KiB for the full rate to the",
        ),
        (  # 8 + 2.01 + 0.01 ns at a packet per 8 ns
            MachineSpec(cube=CubeSpec(sram=SramSpec(buffer_bytes=1_024))),
            "cube.sram.buffer_bytes: found 1 KiB, needed 2 KiB for the full rate of",
        ),
        (  # 39 clocks at 2 a burst, and 8 bursts of a packet
            MachineSpec(cube=CubeSpec(hbm=HbmSpec(read_queue_bursts=27))),
            "cube.hbm.read_queue_bursts: found 27, needed 28 for the full rate of a pseudo-channel",
        ),
        (
            MachineSpec(sip=SipSpec(count=3), fabric=FabricSpec(kind="ring", links=5)),
            "fabric.links: found 5, needed a multiple of 2",
        ),
    ],
)
def test_a_field_that_slows_the_machine_is_named_with_what_it_needs(
    spec: MachineSpec, start: str
) -> None:
    [warning] = warnings_of(build_machine(spec))
    assert warning.startswith(start)


def test_the_default_machine_has_no_warning() -> None:
    assert warnings_of(build_machine(MachineSpec())) == ()


def access_ps(access: Access, memory: MemoryKind, *changes: str) -> int:
    """How long a PE's access of 256 KiB to its own slice, or the SRAM of its cube, takes."""
    spec = parse_machine("ahbm-small", ["cube.hbm.refresh.kind=none", *changes])
    device, pe = build_device(build_machine(spec)), PeCoord(0, 0, 0)
    graph = TaskGraph()
    graph.exchange(device.pe_access(pe, pe, access, memory=memory), 256 * 1024, effect=0)
    device.engine.submit(graph)
    device.engine.run()
    [(end_ps, _)] = device.engine.take_effects()
    return end_ps


@pytest.mark.parametrize(
    ("access", "memory", "field", "needed", "least"),
    [
        (Access.WRITE, MemoryKind.SRAM, "cube.sram.buffer_bytes", 2048, 1024),
        (Access.READ, MemoryKind.HBM, "cube.hbm.read_queue_bursts", 28, 24),
    ],
)
def test_what_a_warning_says_is_needed_gives_the_full_rate_and_less_does_not(
    access: Access, memory: MemoryKind, field: str, needed: int, least: int
) -> None:
    best_ps = access_ps(access, memory)
    assert access_ps(access, memory, f"{field}={needed}") == best_ps
    assert access_ps(access, memory, f"{field}={least}") > 1.04 * best_ps
    for value, is_warned in ((needed, False), (least, True)):
        warnings = warnings_of(build_machine(parse_machine("ahbm-small", [f"{field}={value}"])))
        assert [warning.startswith(f"{field}: ") for warning in warnings] == [True] * is_warned


def test_the_verdict_names_the_machine_its_hash_and_its_source() -> None:
    record = check_machine_file("ahbm-small", ["pe.gemm.rows=8"])
    assert (record.source, record.overrides) == ("ahbm-small", ("pe.gemm.rows=8",))
    assert (record.machine, record.num_pes) == ("ahbm-small", 16)
    assert record.machine_hash == machine_hash(parse_machine("ahbm-small", ["pe.gemm.rows=8"]))
    assert record.machine_hash != check_machine_file("ahbm-small").machine_hash


def test_warnings_of_the_file_and_of_the_machine_are_both_told(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("extends: ahbm-small\nfabric: {links: 2}\ncube: {noc: {buffer_bytes: 1 KiB}}\n")
    warnings = check_machine_file(file).warnings
    assert warnings[0] == f"{file} line 2: fabric.links: has no effect, since there is one SIP"
    assert any("cube.noc.buffer_bytes" in warning for warning in warnings[1:])


def test_what_the_builder_refuses_is_shown_with_the_line_of_its_field(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("sip: {count: 4}\nfabric:\n  kind: torus\n  columns: 2\n  links: 1\n")
    with pytest.raises(SpecError, match=r"m\.yaml line 5: fabric\.links: found 1 links"):
        check_machine_file(file)


def test_what_the_builder_refuses_of_a_default_is_shown_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("address: {offset_bits: 29}\ncube: {hbm: {capacity_bytes: 256 MiB}}\n")
    with pytest.raises(SpecError, match=r"m\.yaml: pe\.tcm\.capacity_bytes: found 16777216"):
        check_machine_file(file)
