"""The cases of the probe: who moves what, without running them."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs.probe.machines import overrides, small_machine
from tilewright.machine.build import build_machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.parse import parse_machine
from tilewright.programs.probe.case import PROBE_CASES, Unfit, deal_to_channels, issuers_of

CROWDED = {"east_port_8": 8, "local_all": 128, "slice_all": 128, "bisection": 128, "hot_3": 3}


@given(overrides(), st.sampled_from(sorted(PROBE_CASES)), st.integers(1, 10**6))
@settings(max_examples=40)
def test_every_issuer_moves_its_bytes_and_no_two_flows_share_any(
    values: tuple[str, ...], name: str, num_bytes: int
) -> None:
    machine = small_machine(*values)
    try:
        flows = PROBE_CASES[name].build(machine, num_bytes)
    except Unfit:
        return
    moved: dict[PeCoord | None, int] = defaultdict(int)
    places: dict[PeCoord, list[tuple[int, int]]] = defaultdict(list)
    for flow in flows:
        moved[flow.issuer] += flow.num_bytes
        places[flow.target].append((flow.address, flow.address + flow.num_bytes))
    assert set(moved) == set(issuers_of(flows))
    assert set(moved.values()) == {num_bytes}
    for spans in places.values():
        ends = [0, *(end for _, end in sorted(spans))]
        assert all(start >= end for (start, _), end in zip(sorted(spans), ends, strict=False))


@given(st.integers(1, 9), st.sampled_from(sorted(PROBE_CASES)), st.integers(1, 100_000))
@settings(max_examples=40)
def test_channels_get_even_parts_of_whole_packets_and_the_host_has_one(
    channels: int, name: str, num_bytes: int
) -> None:
    machine = small_machine(f"pe.dma.read_channels={channels}", f"pe.dma.write_channels={channels}")
    try:
        flows = PROBE_CASES[name].build(machine, num_bytes)
    except Unfit:
        return
    for flow in flows:
        parts = list(deal_to_channels(machine, [flow]))
        packets = -(-flow.num_bytes // machine.spec.packet_bytes)
        count = min(1 if flow.issuer is None else channels, packets)
        assert [part.channel for part in parts] == list(range(count))
        ends = [part.address + part.num_bytes for part in parts]
        assert [part.address for part in parts] == [flow.address, *ends[:-1]]
        assert ends[-1] == flow.address + flow.num_bytes
        sizes = [-(-part.num_bytes // machine.spec.packet_bytes) for part in parts]
        assert max(sizes) - min(sizes) <= 1


def test_on_the_default_machine_the_crowded_cases_have_their_issuers() -> None:
    machine = build_machine(parse_machine("ahbm"))
    for name, count in CROWDED.items():
        flows = PROBE_CASES[name].build(machine, 256)
        assert len(issuers_of(flows)) == count == len(flows)
    assert len({flow.target for flow in PROBE_CASES["slice_all"].build(machine, 256)}) == 1
    for flow in PROBE_CASES["bisection"].build(machine, 256):
        assert flow.issuer is not None
        columns = [machine.grid.cell(pe.cube_coord)[0] for pe in (flow.issuer, flow.target)]
        assert sum(columns) == 3


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (("sip.columns=1", "sip.rows=1"), {"pe_next_cube", "pe_far_cube", "bisection"}),
        (("sip.columns=1",), {"east_port_8"}),
        (("cube.pes=1", "cube.hbm.pseudo_channels=2"), {"hot_2", "hot_3", "pe_same_cube"}),
        ((), {"pe_other_sip", "hot_8"}),
    ],
)
def test_a_machine_without_the_parts_has_not_the_case(
    values: tuple[str, ...], names: set[str]
) -> None:
    machine = small_machine(*values)
    for name in names:
        with pytest.raises(Unfit):
            PROBE_CASES[name].build(machine, 256)
