from dataclasses import replace

import pytest

from tilewright.errors import ModelError
from tilewright.models.catalogue import SHAPES
from tilewright.models.rope import RopeSpec
from tilewright.models.shape import ExpertShape, GqaShape, MlaShape


def gqa() -> GqaShape:
    shape = SHAPES["smollm2-135m"]
    assert isinstance(shape, GqaShape)
    return shape


def mla() -> MlaShape:
    shape = SHAPES["deepseek-v3"]
    assert isinstance(shape, MlaShape)
    return shape


@pytest.mark.parametrize("value", [0, -3, 1.5, True, 2**0.5])
@pytest.mark.parametrize("name", ["layers", "hidden", "vocab"])
def test_a_size_that_is_no_positive_whole_number_is_refused(name: str, value: object) -> None:
    with pytest.raises(ModelError, match=rf"shape\.{name}: found"):
        replace(gqa(), **{name: value})  # type: ignore[arg-type]


def test_query_heads_that_do_not_share_evenly_are_refused() -> None:
    with pytest.raises(ModelError, match="9 query heads, 2 KV heads"):
        replace(gqa(), kv_heads=2)


def test_rope_on_part_of_a_head_is_refused() -> None:
    with pytest.raises(ModelError, match="RoPE on 32 of 64 channels"):
        replace(gqa(), rope=RopeSpec(base=1e4, width=32))
    with pytest.raises(ModelError, match="RoPE on 32 of 64 channels"):
        replace(mla(), rope=RopeSpec(base=1e4, width=32))


def test_more_active_experts_than_there_are_in_the_chosen_groups_are_refused() -> None:
    with pytest.raises(ModelError, match="5 of 8 experts"):
        ExpertShape(experts=8, active=5, width=4, groups=2)
    with pytest.raises(ModelError, match="equal groups"):
        ExpertShape(experts=8, active=1, width=4, groups=3)


def test_a_stretched_latent_model_scales_its_logits_more_than_its_width_says() -> None:
    plain = replace(mla(), rope=RopeSpec(base=1e4, width=64))
    assert plain.attention_scale == pytest.approx(192**-0.5)
    assert mla().attention_scale == pytest.approx(192**-0.5 * 1.3688879454**2)
