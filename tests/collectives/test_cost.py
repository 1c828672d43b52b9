"""Latencies and rates of the spec, one by one."""

from dataclasses import replace
from fractions import Fraction

from tilewright.collectives.cost import PeCost, way_of
from tilewright.device.ipcq import RingSpec
from tilewright.machine.build import build_machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.parse import parse_machine
from tilewright.machine.route import zero_load_ps

MACHINE = build_machine(parse_machine("ahbm-small", ["sip.count=2"]))
HERE, THERE = PeCoord(0, 0, 0), PeCoord(1, 0, 0)
COST = PeCost.of(MACHINE, HERE)
WAY = way_of(MACHINE, HERE, THERE)
PACKET = 1024


def test_a_slice_gives_what_refresh_leaves_of_its_rate() -> None:
    """256 GB/s, of which 85.33 % are left."""
    assert round(float(COST.memory * Fraction(256, 1000)), 4) == round(1 / 0.8533, 4)


def test_one_packet_takes_the_idle_way_the_ports_and_two_looks_of_the_scheduler() -> None:
    links = [MACHINE.links[link] for link in WAY.links]
    idle_ps = zero_load_ps(links, num_flits=16, flit_bytes=64)
    whole_ps = WAY.latency_ps(PACKET, RingSpec(), COST) + PACKET * WAY.byte
    assert whole_ps == idle_ps + 2 * PACKET * 1000 // 512 + 2 * COST.dispatch_ps
    slower = replace(COST, dispatch_ps=COST.dispatch_ps + 7)
    assert WAY.latency_ps(PACKET, RingSpec(), slower) + PACKET * WAY.byte == whole_ps + 14
