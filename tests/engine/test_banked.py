"""Banked memories against the model that goes burst by burst."""

from hypothesis import given

from tests.oracles_hbm.burst_model import Request, run_bursts
from tests.oracles_hbm.loads import cases, drive
from tilewright.engine import EngineKind
from tilewright.engine.banked import BankedMemory, BankedSpec


@given(cases())
def test_every_load_is_served_as_burst_by_burst(case: tuple[BankedSpec, list[Request]]) -> None:
    spec, load = case
    assert drive(BankedMemory(spec, EngineKind.REFERENCE), load) == run_bursts(spec, load)
