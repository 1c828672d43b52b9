"""Each group notices when what it looks at is wrong: the test of the oracles themselves."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.dma import Access
from tilewright.device.gemm import SystolicArray
from tilewright.engine import EngineKind, native_built
from tilewright.engine.dram.spec import BankedSpec, pieces
from tilewright.machine.build import build_machine
from tilewright.machine.parse import parse_machine
from tilewright.validation import link, queue, roofline
from tilewright.validation.finding import Finding
from tilewright.validation.gemm import product
from tilewright.validation.hbm import data_sheet as hbm
from tilewright.validation.hbm.run import address_of, channel_memory
from tilewright.validation.noc import mesh as noc
from tilewright.validation.noc import saturation as saturated
from tilewright.validation.workload import MeshSpec

KIND = EngineKind.NATIVE if native_built() else EngineKind.REFERENCE


def slow_exponential(generator: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    return generator.exponential(1.03, count)


@pytest.mark.parametrize(("draw", "ok"), [(queue.exponential, True), (slow_exponential, False)])
def test_a_service_three_per_cent_too_slow_breaks_m_m_1(draw: queue.Draw, ok: bool) -> None:
    variance = queue.markov_variance(0.5)
    finding = queue.check_wait(KIND, draw=draw, load=0.5, expected=1.0, variance=variance)
    assert finding.ok is ok


def test_a_cycle_too_many_on_a_path_breaks_the_idle_mesh() -> None:
    check = partial(noc.check_corners, mesh=MeshSpec(4, unit_ps=1, slow_units=(1, 3)))
    assert check(KIND, cycles=39).ok
    slower = MeshSpec(4, unit_ps=1, slow_units=(1, 4))
    assert not noc.check_corners(KIND, mesh=slower, cycles=39).ok


def test_smaller_buffers_than_the_flit_model_s_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    hot_spot = saturated._limits(4)[3]
    limits = ((hot_spot, 10),)
    assert saturated.check_deliveries(KIND, limits=limits).ok
    saturated._beside.cache_clear()
    run = noc.run_traffic
    monkeypatch.setattr(
        saturated,
        "run_traffic",
        lambda side, pattern, traffic, _flits, kind: run(side, pattern, traffic, 4, kind),
    )
    assert not saturated.check_deliveries(KIND, limits=limits).ok
    saturated._beside.cache_clear()


def test_balanced_traffic_sends_from_every_pair_equally_often() -> None:
    pattern = noc.Pattern("all", tuple(noc.all_pairs(9, with_self=False)))
    traffic = noc.balanced_traffic(pattern, 0.5, rounds=3, seed=5)
    pairs = zip(traffic.sources.tolist(), traffic.targets.tolist(), strict=True)
    counts = dict.fromkeys(pattern.pairs, 0)
    for pair in pairs:
        counts[pair] += 1
    assert set(counts.values()) == {3}
    assert traffic.at_ps.tolist() == sorted(traffic.at_ps.tolist())


FIRST = hbm.PARTS[0]


@pytest.mark.parametrize("check", [
    partial(hbm.check_second, place="column", expected=FIRST.hit_ps),
    hbm.check_closed,
    partial(hbm.check_second, place="row", expected=FIRST.conflict_ps),
])  # fmt: skip
def test_a_clock_more_breaks_the_latencies_of_hbm(
    check: Callable[..., Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check(KIND, part=FIRST).ok
    spec = channel_memory(FIRST.preset)
    later = replace(spec, timing=replace(spec.timing, cl_ps=spec.timing.cl_ps + 500))
    monkeypatch.setattr(hbm, "channel_memory", lambda _preset: later)
    assert not check(KIND, part=FIRST).ok


@pytest.mark.parametrize(
    ("place", "field", "rate"),
    [
        (hbm.in_rotation, "ccd_s_ps", "peak"),
        (hbm.in_one_group, "ccd_l_ps", "same_group"),
        (hbm.in_all_banks, "faw_ps", "activates"),
        (hbm.in_one_bank, "rc_ps", "one_bank"),
    ],
)
def test_each_rate_of_hbm_hangs_on_its_own_distance(
    place: hbm.Place, field: str, rate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = hbm.PARTS[1]
    check = partial(hbm.check_rate, part=part, place=place, expected=getattr(part, rate))
    assert check(KIND).ok
    spec = channel_memory(part.preset)
    slower = replace(spec.timing, **{field: getattr(spec.timing, field) + 625})
    monkeypatch.setattr(hbm, "channel_memory", lambda _preset: replace(spec, timing=slower))
    assert not check(KIND).ok


@given(data=st.data())
@pytest.mark.parametrize("preset", ["ahbm", "hbm3"])
def test_an_address_lies_where_it_was_meant_to(preset: str, data: st.DataObject) -> None:
    spec: BankedSpec = channel_memory(preset)
    sizes = {"bank_group": spec.bank_groups, "column": 32, "bank": spec.banks}
    sizes |= {"stack_id": spec.stack_ids, "row": spec.rows}
    place = {name: data.draw(st.integers(0, size - 1)) for name, size in sizes.items()}
    (piece,) = pieces(spec, address_of(spec, place), spec.burst_bytes)
    group = place["stack_id"] * spec.bank_groups + place["bank_group"]
    assert piece.row == place["row"]
    assert spec.bank_table[piece.first_burst] == group * spec.banks + place["bank"]


@pytest.mark.parametrize(("rate", "ok"), [(57_614, True), (63_015, False), (56_000, False)])
def test_a_host_link_without_its_overhead_is_noticed(rate: int, ok: bool) -> None:
    assert link.check_stream(KIND, bytes_per_us=rate, figure="57.61").ok is ok


def test_a_cycle_more_breaks_the_systolic_law(monkeypatch: pytest.MonkeyPatch) -> None:
    assert product.check_last_cycle(KIND, case=product.CASES[0]).ok
    law = SystolicArray.cycles
    monkeypatch.setattr(SystolicArray, "cycles", lambda *args: law(*args) + 1)
    assert not product.check_last_cycle(KIND, case=product.CASES[0]).ok


@pytest.mark.parametrize("access", Access)
def test_a_memory_beyond_its_nominal_rate_beats_the_floor(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    faster = ["cube.hbm.timing.clock_ps=250", "cube.noc.bytes_per_us=512 GB/s"]
    faster.append("cube.noc.attach_bytes_per_us=512 GB/s")
    machine = build_machine(parse_machine("ahbm", faster))
    monkeypatch.setattr(roofline, "machine_named", lambda _: machine)
    assert not roofline.check_streams(KIND, access=access).ok
