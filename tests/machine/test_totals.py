import pytest

from tests.machine.shapes import cube_of, open_mesh, single_die
from tilewright.machine.build import build_machine
from tilewright.machine.spec import (
    CrossbarSpec,
    CubeSpec,
    FabricSpec,
    HbmSpec,
    MachineSpec,
    PeSpec,
    RefreshSpec,
    RingSpec,
    SipSpec,
    SystolicSpec,
)
from tilewright.machine.totals import MachineTotals, slice_bytes_per_us, totals_of


def totals(spec: MachineSpec) -> MachineTotals:
    return totals_of(build_machine(spec))


def test_the_default_machine_has_the_totals_of_its_design() -> None:
    found = totals(MachineSpec())
    assert (found.num_sips, found.num_cubes, found.num_pes) == (2, 32, 256)
    assert found.f16_flop_per_s == 256 * 8_192 * 10**9
    assert found.hbm_bytes == 2 * 768 * 2**30
    assert found.hbm_bytes_per_us == 32 * 2_048_000
    assert slice_bytes_per_us(MachineSpec()) == 256_000


def test_refresh_leaves_what_hb8_and_hb9_say() -> None:
    one = totals(MachineSpec(sip=SipSpec(count=1, columns=1, rows=1)))
    assert one.refreshed_hbm_bytes_per_us == 1_747_626  # 2048 GB/s x (1 - 572 / 3900)
    assert round(one.refreshed_hbm_bytes_per_us / one.hbm_bytes_per_us, 4) == 0.8533


def test_other_memory_models_lose_nothing_or_their_named_share() -> None:
    def usable(hbm: HbmSpec) -> int:
        sip = SipSpec(count=1, columns=1, rows=1)
        return totals(MachineSpec(sip=sip, cube=CubeSpec(hbm=hbm))).refreshed_hbm_bytes_per_us

    assert usable(HbmSpec(refresh=RefreshSpec(kind="none"))) == 2_048_000
    assert usable(HbmSpec(model="simple", simple_efficiency_percent=80)) == 1_638_400


def test_a_systolic_array_has_one_multiply_add_a_cell() -> None:
    gemm = SystolicSpec(rows=128, columns=128)
    found = totals(MachineSpec(pe=PeSpec(gemm=gemm)))
    assert found.f16_flop_per_s == 256 * 2 * 128 * 128 * 10**9


def test_bisections_of_the_default_machine_are_counted_one_way() -> None:
    found = totals(MachineSpec())
    assert found.cube_bisection_bytes_per_us == 4 * 256_000  # the hole takes two of six rows
    assert found.sip_bisection_bytes_per_us == 4 * 4 * 128_000
    assert found.fabric_bisection_bytes_per_us == 4 * 128_000


@pytest.mark.parametrize(
    ("fabric", "wires"),
    [
        (FabricSpec(kind="switch"), 3 * 4),
        (FabricSpec(kind="ring"), 2 * 2),
        (FabricSpec(kind="torus", columns=3), 2 * 2),
        (FabricSpec(kind="mesh", columns=3), 2),
        (FabricSpec(kind="mesh", columns=2), 2),
    ],
)
def test_the_bisection_of_six_sips_follows_the_shape(fabric: FabricSpec, wires: int) -> None:
    spec = MachineSpec(
        sip=SipSpec(count=6, columns=1, rows=1),
        fabric=fabric,
        cube=cube_of(2, CrossbarSpec(), 1),
    )
    assert totals(spec).fabric_bisection_bytes_per_us == wires * 128_000


@pytest.mark.parametrize(
    ("spec", "bytes_per_us"),
    [
        (open_mesh(8), 8 * 256_000),
        (single_die(8, RingSpec()), 2 * 256_000),
        (single_die(8, CrossbarSpec()), 4 * 256_000),
    ],
)
def test_the_bisection_of_a_die_follows_its_network(spec: MachineSpec, bytes_per_us: int) -> None:
    found = totals(spec)
    assert found.cube_bisection_bytes_per_us == bytes_per_us
    assert found.sip_bisection_bytes_per_us is None
    assert found.fabric_bisection_bytes_per_us is None
