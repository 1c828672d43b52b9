"""The rules that machine files and the engine share, beside what the engine does."""

import pytest

from tests.kinds import every_engine
from tilewright.device.memory import slice_spec
from tilewright.engine import EngineKind, EngineSpec, TaskGraph, build_engine
from tilewright.engine.dram.spec import BankedSpec
from tilewright.errors import EngineError, SpecError
from tilewright.limits import max_channel_bursts, min_refresh_interval_ps
from tilewright.machine.parse import parse_machine
from tilewright.machine.spec import HbmSpec
from tilewright.machine.spec.hbm import HbmTimingSpec, RefreshSpec


def slice_of(hbm: HbmSpec) -> BankedSpec:
    found = slice_spec(hbm, 0, 8)
    assert isinstance(found, BankedSpec)
    return found


def test_files_and_engine_refuse_an_interval_of_the_same_picosecond() -> None:
    least_ps = min_refresh_interval_ps(HbmTimingSpec().distances_ps, 530_000)
    change = "cube.hbm.refresh.interval_ps"
    with pytest.raises(SpecError, match=f"expected above {least_ps}, so that both fit"):
        parse_machine("ahbm", [f"{change}={least_ps}"])
    hbm = parse_machine("ahbm", [f"{change}={least_ps + 1}"]).cube.hbm
    assert slice_of(hbm).refresh is not None
    shorter = RefreshSpec.model_construct(**(dict(hbm.refresh) | {"interval_ps": least_ps}))
    with pytest.raises(EngineError, match=f"an interval above {least_ps} ps"):
        slice_of(HbmSpec.model_construct(**(dict(hbm) | {"refresh": shorter})))


@every_engine
@pytest.mark.parametrize("packet_bytes", [256, 1024, 2048, 4096])
def test_queues_for_the_bursts_of_one_packet_take_packets_from_any_byte_on(
    kind: EngineKind, packet_bytes: int
) -> None:
    hbm = HbmSpec()
    sizes = {"interleave_bytes": hbm.interleave_bytes, "burst_bytes": hbm.burst_bytes}
    needed = max_channel_bursts(packet_bytes=packet_bytes, num_channels=8, **sizes)

    def end_ps(num_bursts: int) -> int:
        narrow = HbmSpec(
            read_queue_bursts=num_bursts,
            write_queue_bursts=num_bursts,
            drain_high_bursts=num_bursts,
            drain_low_bursts=0,
        )
        engine = build_engine(kind, EngineSpec(flit_bytes=64, packet_flits=packet_bytes // 64))
        memory = engine.add_memory("memory", slice_of(narrow), 2**30)
        route = engine.add_route([memory])
        graph = TaskGraph()
        for first in (0, 1, 31, 225, 2047):
            graph.transfer(route, 3 * packet_bytes, effect=0, tag=first)
        engine.submit(graph)
        engine.run()
        return max(at_ps for at_ps, _ in engine.take_effects())

    assert end_ps(needed) > 0
    with pytest.raises(EngineError, match=f"expected at least {needed}"):
        end_ps(needed - 1)
