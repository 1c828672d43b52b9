from dataclasses import replace
from typing import Any

import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.flow.making import flow_of, score
from tilewright.attention.backends.reference import StepOutput
from tilewright.attention.flow import build_vflow
from tilewright.attention.flow.registry import list_keys
from tilewright.attention.verify import (
    DEFAULT_BLOCK_SIZES,
    DEFAULT_D_VALUES,
    DEFAULT_G_VALUES,
    DEFAULT_PAGE_BLOCK_RATIOS,
    DEFAULT_PAGES_PER_WORKLOAD,
    Config,
    Failure,
    VerifyReport,
    numeric,
    verify_flow_compilable,
)
from tilewright.errors import RegistryError, SpecError

ONE_POINT: dict[str, Any] = {
    "G_values": (2,),
    "D_values": (16,),
    "block_sizes": (8,),
    "page_block_ratios": (1,),
    "pages_per_workload_values": (1,),
    "kv_cache_dtype": "float32",
    "q_data_type": "float32",
    "num_kv_heads": 2,
    "mla_dims": (12, 4),
}

ROOMY: dict[str, Any] = {"D_values": (32,), "block_sizes": (16,), "mla_dims": (28, 4)}
"""Some ready flows pick 32 channels, or have sub-blocks of 16 tokens."""


def needs_pages_of_16(q: Any, o: Any, cache: Any, ctx: Any) -> None:
    del ctx
    o.select(((q.mean(1) @ cache["k"].reshape(16, 16).T).max(2)).topk())


def test_the_defaults_are_those_that_users_know() -> None:
    assert DEFAULT_G_VALUES == (1, 2, 4, 8, 16)
    assert DEFAULT_D_VALUES == (32, 64, 128)
    assert DEFAULT_BLOCK_SIZES == (4, 8, 16, 32, 64, 128)
    assert DEFAULT_PAGE_BLOCK_RATIOS == (1, 2, 4, 8, 16)
    assert DEFAULT_PAGES_PER_WORKLOAD == (1, 2)


def test_a_ready_flow_holds_at_every_default_point() -> None:
    report = verify_flow_compilable(build_vflow("quest"))
    assert report.ok
    assert report.total == 5 * 3 * 6 * 5 * 2
    assert all(point.page_size > 256 for point in report.skipped)
    assert (
        report.summary() == f"{len(report.passed)} passed, 0 failed, {len(report.skipped)} skipped"
    )


def test_points_that_a_flow_cannot_take_are_told_with_phase_and_reason() -> None:
    flow = flow_of(needs_pages_of_16, lambda *_: None, {})
    report = verify_flow_compilable(
        flow, **{**ONE_POINT, "block_sizes": (8, 16), "page_block_ratios": (1, 2)}
    )
    assert not report.ok
    assert {item.cfg.block_size for item in report.failed} == {8}
    assert report.failures_by_phase() == {"indexer": 2}
    assert "Reshape operand x" in report.failed[0].traceback
    assert "indexer: B=2 G=2 D=16" in report.summary()


@pytest.mark.parametrize("name", list_keys())
def test_the_numbers_of_a_ready_flow_hold(name: str) -> None:
    report = verify_flow_compilable(name, numeric=True, **(ONE_POINT | ROOMY))
    assert report.ok, report.summary()
    assert report.largest_error < 1e-5


def test_numbers_that_are_wrong_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = numeric._run

    def skewed(*arguments: Any) -> list[StepOutput]:
        return [replace(found, output=found.output * 1.01) for found in honest(*arguments)]

    monkeypatch.setattr(numeric, "_run", skewed)
    report = verify_flow_compilable("quest", numeric=True, **ONE_POINT)
    assert report.failures_by_phase() == {"numeric": 1}
    assert "a relative error of 0.01" in report.failed[0].traceback


def test_progress_is_told_when_it_is_asked_for() -> None:
    told: list[str] = []
    verify_flow_compilable("quest", verbose=True, progress=told.append, **ONE_POINT)
    verify_flow_compilable("quest", verbose=False, progress=told.append, **ONE_POINT)
    assert told == ["passed: B=2 G=2 D=16 kv_heads=2 block=8 page=8 ppw=1"]


def test_an_unknown_flow_and_no_side_at_all_are_refused() -> None:
    with pytest.raises(RegistryError, match="no flow 'nothing'"):
        verify_flow_compilable("nothing")
    with pytest.raises(SpecError, match="no side to verify"):
        verify_flow_compilable("quest", verify_indexer=False, verify_cache=False)


def test_a_point_knows_what_follows_from_its_sizes() -> None:
    point = Config(B=2, G=4, D=64, num_kv_heads=8, block_size=16, page_size=64)
    assert (point.num_blocks_per_page, point.num_qo_heads, point.workload_chunk_size) == (4, 32, 4)
    assert point.label() == "B=2 G=4 D=64 kv_heads=8 block=16 page=64 ppw=1"


def test_a_summary_shows_as_many_failures_as_it_is_asked_for() -> None:
    point = Config(B=1, G=1, D=8, num_kv_heads=1, block_size=4, page_size=4)
    report = VerifyReport(failed=tuple(Failure(point, "cache", f"no {i}") for i in range(5)))
    lines = report.summary(max_failures=2).splitlines()
    assert lines[0] == "0 passed, 5 failed, 0 skipped"
    assert lines[-1] == "... and 3 more"
    assert not VerifyReport().ok  # nothing was tried


def test_a_flow_object_is_not_changed_for_its_owner_by_verification() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select(score(q, cache).topk())

    flow = flow_of(forward)
    assert verify_flow_compilable(flow, **ONE_POINT).ok
