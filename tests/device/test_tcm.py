from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds import every_engine
from tilewright.device.tcm import Tcm
from tilewright.engine import EngineKind, TaskGraph, build_engine
from tilewright.errors import UnitError
from tilewright.machine.spec import TcmSpec

rates = st.integers(1, 10**9)


@given(num_bytes=st.integers(1, 2**30), read=rates, write=rates)
def test_an_access_holds_its_port_for_bytes_over_rate_rounded_up_once(
    num_bytes: int, read: int, write: int
) -> None:
    tcm = Tcm("pe0.tcm", TcmSpec(read_bytes_per_us=read, write_bytes_per_us=write))
    assert 0 <= tcm.read_ps(num_bytes) - Fraction(num_bytes * 10**6, read) < 1
    assert 0 <= tcm.write_ps(num_bytes) - Fraction(num_bytes * 10**6, write) < 1


@every_engine
def test_reads_queue_on_one_port_and_writes_pass_them_on_the_other(kind: EngineKind) -> None:
    tcm = Tcm("pe0.tcm", TcmSpec(read_bytes_per_us=512_000, write_bytes_per_us=256_000))
    engine = build_engine(kind)
    read, write = (engine.add_route([engine.add_server(port)]) for port in tcm.ports())
    graph = TaskGraph()
    graph.hold(read, hold_ps=tcm.read_ps(1024), effect=1)
    graph.hold(read, hold_ps=tcm.read_ps(2048), effect=2)
    graph.hold(write, hold_ps=tcm.write_ps(1024), effect=3)
    engine.submit(graph)
    engine.run()
    assert sorted(engine.take_effects()) == [(2_000, 1), (4_000, 3), (6_000, 2)]


def test_the_ports_are_named_after_their_memory() -> None:
    names = [port.name for port in Tcm("sip0.cube3.pe5.tcm", TcmSpec()).ports()]
    assert names == ["sip0.cube3.pe5.tcm.read", "sip0.cube3.pe5.tcm.write"]


def test_programs_get_what_the_reserve_leaves() -> None:
    assert Tcm("pe0.tcm", TcmSpec()).usable_bytes == 12 * 2**20
    spec = TcmSpec(capacity_bytes=100, reserved_bytes=99)
    assert Tcm("pe0.tcm", spec).usable_bytes == 1


def test_an_access_to_nothing_is_refused() -> None:
    tcm = Tcm("pe0.tcm", TcmSpec())
    for access in (tcm.read_ps, tcm.write_ps):
        with pytest.raises(UnitError, match="expected at least 1"):
            access(0)
