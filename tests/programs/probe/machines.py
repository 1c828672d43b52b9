"""Small machines that differ from ahbm-small in a few values, as ``--set`` would make them."""

from hypothesis import strategies as st

from tilewright.machine.build import Machine, build_machine
from tilewright.machine.parse import parse_machine

__all__ = ("overrides", "small_machine")

SHAPES = (
    ("sip.columns=1", "sip.rows=1"),
    ("sip.columns=1",),
    ("sip.rows=1",),
    ("sip.count=2", "sip.rows=1"),
    ("sip.count=3", "sip.columns=1", "sip.rows=1", "fabric.kind=ring"),
    ("cube.noc={kind: ring, routers: 5}",),
    ("cube.noc={kind: crossbar}",),
    ("cube.noc={kind: mesh, rows: 2, columns: 3, hole_rows: 0, hole_columns: 0}",),
    ("cube.ucie.connections=1",),
    ("cube.pes=2", "cube.hbm.pseudo_channels=4"),
)
VALUES = {
    "packet_bytes": (256, 512, 2048),
    "flit_bytes": (32, 128),
    "ps_per_mm": (0, 333),
    "cube.noc.bytes_per_us": (37_000, 1_024_000),
    "cube.noc.attach_bytes_per_us": (51_000, 512_000),
    "fabric.latency_ps": (0,),
    "cube.noc.router_ps": (0, 7_777),
    "cube.noc.buffer_bytes": (2_048, 65_536),
    "cube.ucie.bytes_per_us": (33_333, 300_000),
    "cube.ucie.side_ps": (0, 50_001),
    "host.in_flight_bytes": (2_048, 16_384),
    "host.pcie.generation": (1, 4),
    "host.pcie.overhead_bytes": (0, 100),
    "pe.dma.in_flight_bytes": (2_048, 8_192),
    "pe.dma.read_channels": (2, 5),
    "pe.dma.write_channels": (3,),
    "cube.hbm.model": ("simple",),
    "cube.hbm.simple_efficiency_percent": (50, 93),
    "cube.hbm.interleave_bytes": (64, 128),
    "cube.hbm.bank_groups": (1, 4),
    "cube.hbm.read_queue_bursts": (64,),
    "cube.hbm.refresh.kind": ("none", "per_bank"),
    "cube.hbm.refresh.interval_ps": (1_000_000,),
    "cube.hbm.timing.clock_ps": (333, 1_250),
    "cube.hbm.timing.ccd_l_clocks": (2, 9),
    "cube.hbm.timing.rrd_s_clocks": (0, 20),
    "cube.hbm.timing.cl_clocks": (0, 55),
    "cube.hbm.timing.rcd_read_clocks": (0, 90),
    "cube.hbm.address_map": ("[burst, column, bank_group, bank, stack_id, row]",),
}


def small_machine(*overrides: str) -> Machine:
    return build_machine(parse_machine("ahbm-small", overrides))


@st.composite
def overrides(draw: st.DrawFn) -> tuple[str, ...]:
    """A shape and up to six other values, as ``small_machine`` takes them."""
    keys = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=6, unique=True))
    values = [f"{key}={draw(st.sampled_from(VALUES[key]))}" for key in keys]
    shape = draw(st.sampled_from(((), *SHAPES)))
    return (*shape, *values)
