"""The greatest share of a run, whoever has it, in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.analysis.usage import UsedBlock, bottleneck_of
from tilewright.records import Bottleneck, RunParts
from tilewright.report.format import PART_WORDS, bottleneck_words

LINK = UsedBlock("sip0.cube0.r0c0 -> sip0.cube0.r0c1", "link", 0.5)


def test_a_part_with_the_greatest_share_is_the_bottleneck() -> None:
    found = bottleneck_of(RunParts(gemm=60, vector=40), [LINK], 100)
    assert found == Bottleneck(kind="part", name="gemm", share=0.6)
    assert bottleneck_words(found) == "the GEMM unit: 60 % of the time, on the critical path"


def test_of_equal_shares_the_block_is_the_bottleneck() -> None:
    found = bottleneck_of(RunParts(gemm=50, vector=50), [LINK], 100)
    assert found == Bottleneck(kind="link", name=LINK.name, share=0.5)
    assert bottleneck_words(found) == f"the link {LINK.name}: in use 50 % of the time"


def test_a_run_that_took_no_time_has_no_bottleneck() -> None:
    assert bottleneck_of(RunParts(), [], 0) is None
    assert bottleneck_words(None) == "none: no time passed"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sip0.cube0.pe3.gemm", "the GEMM unit of sip0.cube0.pe3"),
        ("sip0.cube0.pe3.vector", "the vector unit of sip0.cube0.pe3"),
        ("sip0.cube0.pe3.tcm.read", "the read port of the TCM of sip0.cube0.pe3"),
        ("sip0.cube0.pe3.cpu", "the CPU of sip0.cube0.pe3"),
    ],
)
def test_a_unit_is_named_with_its_pe(name: str, words: str) -> None:
    found = Bottleneck(kind="unit", name=name, share=0.75)
    assert bottleneck_words(found) == f"{words}: in use 75 % of the time"


def test_a_memory_is_named_by_what_it_is() -> None:
    slice_words = bottleneck_words(Bottleneck(kind="memory", name="hbm_ctrl.pe0", share=0.75))
    assert slice_words == "the HBM behind hbm_ctrl.pe0: in use 75 % of the time, refresh included"
    sram_words = bottleneck_words(Bottleneck(kind="memory", name="sip0.cube1.sram", share=0.75))
    assert sram_words == "the SRAM of sip0.cube1: in use 75 % of the time"


def test_every_part_of_a_record_has_words() -> None:
    assert list(PART_WORDS) == list(RunParts.model_fields)


@given(times=st.lists(st.integers(0, 100), min_size=16, max_size=16), share=st.floats(0, 1))
def test_nothing_has_a_greater_share_than_the_bottleneck(times: list[int], share: float) -> None:
    parts = RunParts(**dict(zip(RunParts.model_fields, times, strict=True)))
    found = bottleneck_of(parts, [UsedBlock("a -> b", "link", share)], parts.total_ps)
    if found is not None:
        assert found.share == max(share, max(times) / parts.total_ps)
