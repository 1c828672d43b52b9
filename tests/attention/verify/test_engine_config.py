from pathlib import Path

import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tilewright.attention.verify import ConfigCheck, check_engine_config


def failed(checks: tuple[ConfigCheck, ...]) -> dict[str, str]:
    return {check.name: check.detail for check in checks if not check.ok}


def test_a_good_config_passes_every_check() -> None:
    checks = check_engine_config({"module_name": "quest", "layers_skip": [0]}, num_layers=28)
    assert failed(checks) == {}
    assert len(checks) == 11


@pytest.mark.parametrize(
    ("values", "name", "found"),
    [
        ({"module_name": "quest", "block_size": 24}, "powers of two", "found 24"),
        ({"module_name": "quest", "workload_chunk_size": 33}, "powers of two", "found 33"),
        (
            {"module_name": "quest", "page_size": 64, "workload_chunk_size": 2},
            "page size",
            "a multiple of 4 blocks",
        ),
        ({"module_name": "quest", "max_topk_val": 3}, "budget", "at least topk_val 30"),
        ({"module_name": "quest", "layers_skip": [28]}, "dense layers", r"layers \[28\]"),
        (
            {"module_name": "quest", "layers_skip": list(range(28))},
            "dense layers",
            "every layer of the model",
        ),
        ({}, "flow", "the name of a flow"),
        ({"module_name": "qest"}, "flow", "did you mean 'quest'"),
        ({"module_name": "quest", "attention_backend": "cuda_mla"}, "backend", "one for GQA"),
        ({"module_name": "quest_mla"}, "backend", "one for MLA"),
        ({"module_name": "lserve_sparse_attention", "block_size": 8}, "compiles", "create_cache"),
    ],
)
def test_what_is_wrong_fails_its_check(values: dict[str, object], name: str, found: str) -> None:
    details = failed(check_engine_config(values, num_layers=28))
    assert name in details
    assert found.replace("\\", "") in details[name]


def test_any_page_size_does_on_the_reference_backend() -> None:
    values = {"module_name": "quest", "block_size": 24, "impl_backend": "reference"}
    assert failed(check_engine_config(values)) == {}


def test_a_config_that_cannot_be_read_fails_at_once() -> None:
    (only,) = check_engine_config('{"topk": 3}')
    assert (only.name, only.ok) == ("config", False)
    assert "unknown key 'topk'" in only.detail


def test_state_keeps_the_prefix_cache_on_and_is_counted() -> None:
    checks = check_engine_config({"module_name": "running_avg_block_sparse"})
    detail = {check.name: check.detail for check in checks}["state and prefix cache"]
    assert detail.startswith("prefix cache stays on; 2 bytes of state")


def test_a_flow_file_is_checked_like_a_ready_flow(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from tilewright.attention import register, vFlow\n"
        "@register('mine')\n"
        "class Mine(vFlow):\n"
        "    def forward_indexer(self, q, o, cache, ctx):\n"
        "        pass\n"
    )
    details = failed(check_engine_config({"module_path": str(file), "module_name": "mine"}))
    assert "no terminal" in details["compiles"]
