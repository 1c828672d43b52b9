import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.attention.flow.config import ALIASES, VortexConfig, normalize_vortex_config
from tilewright.errors import SpecError

DEFAULTS = {
    "module_path": None,
    "module_name": None,
    "topk_val": 30,
    "topk_ratio": 0.0,
    "max_topk_val": None,
    "layers_skip": None,
    "block_reserved_bos": 1,
    "block_reserved_eos": 1,
    "max_seq_lens": -1,
    "block_size": 16,
    "workload_chunk_size": 32,
    "dtype": "bfloat16",
    "compilation_cache_dir": None,
    "schedule_policy": None,
    "attention_backend": "flashinfer",
    "impl_backend": "triton",
    "use_tensor_core": False,
    "host_kv_gb": 0.0,
    "host_kv_pool_blocks": 0,
    "host_kv_policy": "lru",
    "frozen_model_name": None,
    "frozen_temperature": None,
}


def test_every_documented_field_has_its_documented_default() -> None:
    config = VortexConfig()
    assert {name: getattr(config, name) for name in DEFAULTS} == DEFAULTS


def test_an_object_a_dict_json_and_flat_keywords_say_the_same() -> None:
    values = {"topk_val": 12, "layers_skip": [0, 1], "block_size": 32}
    forms = [
        normalize_vortex_config(VortexConfig(topk_val=12, layers_skip=(0, 1), block_size=32)),
        normalize_vortex_config(values),
        normalize_vortex_config(json.dumps(values)),
        normalize_vortex_config(
            enable_vortex_sparsity=True,
            vortex_topk_val=12,
            vortex_layers_skip=[0, 1],
            vortex_block_size=32,
        ),
    ]
    assert len({form.content_hash for form in forms if form is not None}) == 1
    assert None not in forms


def test_a_switched_off_config_is_none() -> None:
    assert normalize_vortex_config(enable_vortex_sparsity=False, vortex_topk_val=3) is None


@pytest.mark.parametrize("alias", ALIASES)
def test_other_names_set_the_fields_they_stand_for(alias: str) -> None:
    value = [3] if alias == "skip_layers" else 3
    config = normalize_vortex_config({alias: value})
    assert config is not None
    assert getattr(config, ALIASES[alias]) in (3, (3,))


def test_a_field_and_its_other_name_together_are_refused() -> None:
    with pytest.raises(SpecError, match="expected one of them; drop one"):
        normalize_vortex_config({"sink": 2, "block_reserved_bos": 2})


@given(pages=st.integers(3, 100), size=st.sampled_from([1, 16, 64]))
def test_a_budget_in_tokens_counts_reserved_pages(pages: int, size: int) -> None:
    config = normalize_vortex_config({"token_budget": pages * size, "block_size": size})
    assert config is not None
    assert config.topk_val + config.block_reserved_bos + config.block_reserved_eos == pages


@pytest.mark.parametrize("budget", [0, -16, 47, 2.5, True])
def test_a_budget_below_the_reserved_pages_is_refused(budget: object) -> None:
    with pytest.raises(SpecError, match="at least 48 tokens: 2 reserved pages and one more"):
        normalize_vortex_config({"token_budget": budget})


def test_an_unknown_key_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        SpecError, match=r"found unknown key 'topk_value', .* did you mean 'topk_val"
    ):
        normalize_vortex_config({"topk_value": 3})


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"topk_val": 0}, "topk_val"),
        ({"topk_ratio": 1.5}, "topk_ratio"),
        ({"block_reserved_eos": 0}, "block_reserved_eos"),
        ({"attention_backend": "magic"}, "attention_backend"),
        ({"page_size": 24}, "page_size"),
        ({"dtype": "float99"}, "element type"),
        ({"module_path": "/no/such/file.py"}, "module_path"),
    ],
)
def test_a_wrong_value_is_refused_with_its_field(values: dict[str, object], where: str) -> None:
    with pytest.raises(SpecError, match=where):
        normalize_vortex_config(values)


@pytest.mark.parametrize("text", ["{", "[1]", "3"])
def test_text_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match=r"expected (JSON text|a JSON object)"):
        normalize_vortex_config(text)


def test_a_keyword_without_its_prefix_is_refused() -> None:
    with pytest.raises(SpecError, match="write vortex_topk_val"):
        normalize_vortex_config(topk_val=3)
