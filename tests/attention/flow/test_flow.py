from typing import Any

import pytest

from tilewright.attention.flow import FieldSpec, vFlow, vFlowMLA
from tilewright.attention.graph import DType
from tilewright.errors import SpecError


class Centroids(vFlow):
    def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        return {"centroids": (1, head_dim), "per_token": (block_size, 1)}

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        del q, o, cache, ctx


class Latents(vFlowMLA):
    def create_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, Any]:
        del block_size
        return {"c": FieldSpec((1, kv_lora_rank + qk_rope_head_dim), dtype="float32")}

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        del q, o, cache, ctx


def test_sizes_are_none_until_a_flow_is_initialized() -> None:
    flow = Centroids()
    assert (flow.block_size, flow.head_dim, flow.cache_meta_info) == (None, None, None)
    assert flow.get_token_ratio() == 0.0


def test_keys_and_values_have_the_kv_dtype_and_fields_the_intermediate_one() -> None:
    flow = Centroids()
    flow.initialize(16, 128, "fp8_e5m2", "bfloat16")
    assert flow.get_cache_meta_info() == {
        "k": ((16, 128), DType.FLOAT8_E5M2),
        "v": ((16, 128), DType.FLOAT8_E5M2),
        "centroids": ((1, 128), DType.BFLOAT16),
        "per_token": ((16, 1), DType.BFLOAT16),
    }


def test_the_token_ratio_of_keys_and_values_alone_is_two() -> None:
    class Plain(Centroids):
        def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
            del block_size, head_dim
            return {}

    flow = Plain()
    flow.initialize(16, 128, "bfloat16", "bfloat16")
    assert flow.get_token_ratio() == 2.0


def test_the_token_ratio_counts_fields_in_bytes_of_a_block_of_latents() -> None:
    flow = Latents()
    flow.initialize(16, 512, 64, "bfloat16", "bfloat16")
    assert flow.latent_dim == 576
    assert flow.get_token_ratio() == 1 + (576 * 4) / (16 * 576 * 2)


def test_an_unknown_element_type_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(SpecError, match="found 'float99', expected one of float32"):
        Centroids().initialize(16, 128, "float99", "bfloat16")


def test_a_flow_may_leave_out_the_constructor_of_its_base() -> None:
    class Own(Centroids):
        def __init__(self) -> None:
            self.mine = 1

    flow = Own()
    flow.initialize(8, 16, "float32", "float32")
    assert flow.block_size == 8
