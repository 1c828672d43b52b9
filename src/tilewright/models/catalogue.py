"""The shapes that ship, by name. Figures are those of the models' published configurations."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from tilewright.errors import ModelError, RegistryError
from tilewright.models.rope import Llama3Scaling, RopeSpec, Scaling, YarnScaling
from tilewright.models.shape import ExpertShape, GateKind, GqaShape, MlaShape, ModelShape

# what the models of a family have in common
_LLAMA_3: dict[str, Any] = {
    "head_dim": 128, "vocab": 128_256, "context": 8192, "norm_eps": 1e-5, "rope_base": 500_000.0,
}  # fmt: skip
_LLAMA_3_1 = _LLAMA_3 | {"context": 131_072, "scaling": Llama3Scaling(factor=8.0)}
_LLAMA_3_2 = _LLAMA_3_1 | {"scaling": Llama3Scaling(factor=32.0), "tied": True}
_SMOLLM2: dict[str, Any] = {
    "head_dim": 64, "vocab": 49_152, "context": 8192, "norm_eps": 1e-5, "tied": True,
}  # fmt: skip
_QWEN3: dict[str, Any] = {
    "head_dim": 128, "vocab": 151_936, "context": 40_960, "norm_eps": 1e-6,
    "rope_base": 1_000_000.0, "query_key_norm": True,
}  # fmt: skip
_DEEPSEEK: dict[str, Any] = {
    "qk_nope_head_dim": 128, "v_head_dim": 128, "context": 163_840, "norm_eps": 1e-6,
}  # fmt: skip
_DEEPSEEK_V2 = _DEEPSEEK | {"vocab": 102_400}


def _table(shapes: Iterable[ModelShape]) -> Mapping[str, ModelShape]:
    table: dict[str, ModelShape] = {}
    for shape in shapes:
        if shape.name in table:
            raise RegistryError("shapes", f"two {shape.name!r}", "one owner", "rename one")
        table[shape.name] = shape
    return MappingProxyType(table)


def find_shape(name: str) -> ModelShape:
    """Return a shape by its name, in any case of letters."""
    try:
        return SHAPES[name.lower()]
    except KeyError:
        known = ", ".join(SHAPES)
        raise ModelError(f"shape {name!r}", "no such shape", f"one of {known}", "choose") from None


def _gqa(
    name: str,
    sizes: tuple[int, int, int, int, int],
    *,
    head_dim: int,
    rope_base: float,
    scaling: Scaling | None = None,
    **family: Any,
) -> GqaShape:
    """Sizes are layers, hidden, query heads, KV heads, feed-forward width."""
    family |= zip(("layers", "hidden", "query_heads", "kv_heads", "ffn"), sizes, strict=True)
    rope = RopeSpec(base=rope_base, width=head_dim, scaling=scaling)
    return GqaShape(name=name, head_dim=head_dim, rope=rope, **family)


def _mla(
    name: str, sizes: tuple[int, int, int, int], experts: ExpertShape, **family: Any
) -> MlaShape:
    """Sizes are layers, hidden, query heads, feed-forward width."""
    family |= zip(("layers", "hidden", "query_heads", "ffn"), sizes, strict=True)
    return MlaShape(name=name, experts=experts, kv_lora_rank=512, qk_rope_head_dim=64, **family)


def _deepseek_rope(mscale: float) -> RopeSpec:
    scaling = YarnScaling(factor=40.0, original_context=4096, mscale=mscale, mscale_all=mscale)
    return RopeSpec(base=10_000.0, width=64, scaling=scaling)


def _experts(experts: int, active: int, width: int, **others: Any) -> ExpertShape:
    return ExpertShape(experts=experts, active=active, width=width, **others)


SHAPES = _table(
    (
        _gqa("llama-3-8b", (32, 4096, 32, 8, 14_336), **_LLAMA_3),
        _gqa("llama-3-70b", (80, 8192, 64, 8, 28_672), **_LLAMA_3),
        _gqa("llama-3.1-8b", (32, 4096, 32, 8, 14_336), **_LLAMA_3_1),
        _gqa("llama-3.1-70b", (80, 8192, 64, 8, 28_672), **_LLAMA_3_1),
        _gqa("llama-3.2-1b", (16, 2048, 32, 8, 8192), **_LLAMA_3_2 | {"head_dim": 64}),
        _gqa("llama-3.2-3b", (28, 3072, 24, 8, 8192), **_LLAMA_3_2),
        _gqa("smollm2-135m", (30, 576, 9, 3, 1536), rope_base=100_000.0, **_SMOLLM2),
        _gqa("smollm2-360m", (32, 960, 15, 5, 2560), rope_base=100_000.0, **_SMOLLM2),
        _gqa("smollm2-1.7b", (24, 2048, 32, 32, 8192), rope_base=130_000.0, **_SMOLLM2),
        _gqa("qwen3-0.6b", (28, 1024, 16, 8, 3072), tied=True, **_QWEN3),
        _gqa("qwen3-1.7b", (28, 2048, 16, 8, 6144), tied=True, **_QWEN3),
        _gqa("qwen3-4b", (36, 2560, 32, 8, 9728), tied=True, **_QWEN3),
        _gqa("qwen3-8b", (36, 4096, 32, 8, 12_288), **_QWEN3),
        _gqa("qwen3-14b", (40, 5120, 40, 8, 17_408), **_QWEN3),
        _gqa("qwen3-32b", (64, 5120, 64, 8, 25_600), **_QWEN3),
        _gqa("qwen3-30b-a3b", (48, 2048, 32, 4, 6144), experts=_experts(128, 8, 768), **_QWEN3),
        _mla(
            "deepseek-v2-lite",
            (27, 2048, 16, 10_944),
            _experts(64, 6, 1408, shared=2, dense_layers=1, normalized=False),
            q_lora_rank=None,
            rope=_deepseek_rope(0.707),
            **_DEEPSEEK_V2,
        ),
        _mla(
            "deepseek-v2",
            (60, 5120, 128, 12_288),
            _experts(
                160, 6, 1536,
                shared=2, dense_layers=1, groups=8, active_groups=3, normalized=False, scaling=16.0,
            ),
            q_lora_rank=1536,
            rope=_deepseek_rope(1.0),
            **_DEEPSEEK_V2,
        ),
        _mla(
            "deepseek-v3",
            (61, 7168, 128, 18_432),
            _experts(
                256, 8, 2048,
                shared=1, dense_layers=3, gate=GateKind.SIGMOID,
                groups=8, active_groups=4, scaling=2.5,
            ),
            q_lora_rank=1536,
            vocab=129_280,
            rope=_deepseek_rope(1.0),
            **_DEEPSEEK,
        ),
        _mla(
            "glm-4.7-flash",
            (47, 2048, 20, 10_240),
            _experts(64, 4, 1536, shared=1, dense_layers=1, gate=GateKind.SIGMOID, scaling=1.8),
            q_lora_rank=768,
            qk_nope_head_dim=192,
            v_head_dim=256,
            vocab=154_880,
            context=202_752,
            norm_eps=1e-5,
            rope=RopeSpec(base=1_000_000.0, width=64),
        ),
    )
)  # fmt: skip
