from tests.kinds import every_engine
from tilewright.device.build import tcm_servers
from tilewright.engine import EngineKind, TaskGraph, build_engine
from tilewright.machine.spec import TcmSpec
from tilewright.units import flit_ps


@every_engine
def test_reads_queue_on_one_port_and_writes_pass_them_on_the_other(kind: EngineKind) -> None:
    ports = tcm_servers("tcm", TcmSpec(read_bytes_per_us=512_000, write_bytes_per_us=256_000))[:2]
    engine = build_engine(kind)
    read, write = (engine.add_route([engine.add_server(port)]) for port in ports)
    graph = TaskGraph()
    graph.hold(read, hold_ps=flit_ps(flit_bytes=1024, bytes_per_us=512_000), effect=1)
    graph.hold(read, hold_ps=flit_ps(flit_bytes=2048, bytes_per_us=512_000), effect=2)
    graph.hold(write, hold_ps=flit_ps(flit_bytes=1024, bytes_per_us=256_000), effect=3)
    engine.submit(graph)
    engine.run()
    assert sorted(engine.take_effects()) == [(2_000, 1), (4_000, 3), (6_000, 2)]


def test_the_ports_are_named_after_their_memory() -> None:
    names = [server.name for server in tcm_servers("sip0.cube3.pe5.tcm", TcmSpec())]
    assert names == [f"sip0.cube3.pe5.tcm.{part}" for part in ("read", "write", "turn")]
