"""The shapes that ship, by name. Figures are those of the models' published configurations."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tilewright.errors import ModelError, RegistryError
from tilewright.models.rope import Llama3Scaling, RopeSpec, YarnScaling
from tilewright.models.shape import ExpertShape, GateKind, GqaShape, MlaShape, ModelShape


def _table(shapes: Iterable[ModelShape]) -> Mapping[str, ModelShape]:
    table: dict[str, ModelShape] = {}
    for shape in shapes:
        if shape.name in table:
            raise RegistryError("shapes", f"two {shape.name!r}", "one owner", "rename one")
        table[shape.name] = shape
    return MappingProxyType(table)


def find_shape(name: str) -> ModelShape:
    """A shape by its name, in any case of letters."""
    try:
        return SHAPES[name.lower()]
    except KeyError:
        known = ", ".join(SHAPES)
        raise ModelError(f"shape {name!r}", "no such shape", f"one of {known}", "choose") from None


def _llama3(
    name: str,
    sizes: tuple[int, int, int, int, int, int],
    *,
    stretch: float | None = None,
    tied: bool = False,
) -> GqaShape:
    """Sizes are layers, hidden, query heads, KV heads, head dim, feed-forward width."""
    layers, hidden, query_heads, kv_heads, head_dim, ffn = sizes
    scaling = None if stretch is None else Llama3Scaling(factor=stretch)
    return GqaShape(
        name=name,
        layers=layers,
        hidden=hidden,
        query_heads=query_heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn=ffn,
        vocab=128_256,
        context=8192 if stretch is None else 131_072,
        norm_eps=1e-5,
        rope=RopeSpec(base=500_000.0, width=head_dim, scaling=scaling),
        tied=tied,
    )


def _smollm2(name: str, sizes: tuple[int, int, int, int, int], *, rope_base: float) -> GqaShape:
    """Sizes are layers, hidden, query heads, KV heads, feed-forward width."""
    layers, hidden, query_heads, kv_heads, ffn = sizes
    return GqaShape(
        name=name,
        layers=layers,
        hidden=hidden,
        query_heads=query_heads,
        kv_heads=kv_heads,
        head_dim=64,
        ffn=ffn,
        vocab=49_152,
        context=8192,
        norm_eps=1e-5,
        rope=RopeSpec(base=rope_base, width=64),
        tied=True,
    )


def _qwen3(
    name: str,
    sizes: tuple[int, int, int, int, int],
    *,
    tied: bool = False,
    experts: ExpertShape | None = None,
) -> GqaShape:
    """Sizes are layers, hidden, query heads, KV heads, feed-forward width."""
    layers, hidden, query_heads, kv_heads, ffn = sizes
    return GqaShape(
        name=name,
        layers=layers,
        hidden=hidden,
        query_heads=query_heads,
        kv_heads=kv_heads,
        head_dim=128,
        ffn=ffn,
        vocab=151_936,
        context=40_960,
        norm_eps=1e-6,
        rope=RopeSpec(base=1_000_000.0, width=128),
        tied=tied,
        query_key_norm=True,
        experts=experts,
    )


def _deepseek_rope(mscale: float) -> RopeSpec:
    scaling = YarnScaling(factor=40.0, original_context=4096, mscale=mscale, mscale_all=mscale)
    return RopeSpec(base=10_000.0, width=64, scaling=scaling)


DEEPSEEK_V2_LITE = MlaShape(
    name="deepseek-v2-lite",
    layers=27,
    hidden=2048,
    query_heads=16,
    q_lora_rank=None,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    ffn=10_944,
    vocab=102_400,
    context=163_840,
    norm_eps=1e-6,
    rope=_deepseek_rope(0.707),
    experts=ExpertShape(
        experts=64, active=6, width=1408, shared=2, dense_layers=1, normalized=False
    ),
)
DEEPSEEK_V2 = MlaShape(
    name="deepseek-v2",
    layers=60,
    hidden=5120,
    query_heads=128,
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    ffn=12_288,
    vocab=102_400,
    context=163_840,
    norm_eps=1e-6,
    rope=_deepseek_rope(1.0),
    experts=ExpertShape(
        experts=160,
        active=6,
        width=1536,
        shared=2,
        dense_layers=1,
        groups=8,
        active_groups=3,
        normalized=False,
        scaling=16.0,
    ),
)
DEEPSEEK_V3 = MlaShape(
    name="deepseek-v3",
    layers=61,
    hidden=7168,
    query_heads=128,
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    ffn=18_432,
    vocab=129_280,
    context=163_840,
    norm_eps=1e-6,
    rope=_deepseek_rope(1.0),
    experts=ExpertShape(
        experts=256,
        active=8,
        width=2048,
        shared=1,
        dense_layers=3,
        gate=GateKind.SIGMOID,
        groups=8,
        active_groups=4,
        scaling=2.5,
    ),
)
GLM_4_7_FLASH = MlaShape(
    name="glm-4.7-flash",
    layers=47,
    hidden=2048,
    query_heads=20,
    q_lora_rank=768,
    kv_lora_rank=512,
    qk_nope_head_dim=192,
    qk_rope_head_dim=64,
    v_head_dim=256,
    ffn=10_240,
    vocab=154_880,
    context=202_752,
    norm_eps=1e-5,
    rope=RopeSpec(base=1_000_000.0, width=64),
    experts=ExpertShape(
        experts=64,
        active=4,
        width=1536,
        shared=1,
        dense_layers=1,
        gate=GateKind.SIGMOID,
        scaling=1.8,
    ),
)

SHAPES = _table(
    (
        _llama3("llama-3-8b", (32, 4096, 32, 8, 128, 14_336)),
        _llama3("llama-3-70b", (80, 8192, 64, 8, 128, 28_672)),
        _llama3("llama-3.1-8b", (32, 4096, 32, 8, 128, 14_336), stretch=8.0),
        _llama3("llama-3.1-70b", (80, 8192, 64, 8, 128, 28_672), stretch=8.0),
        _llama3("llama-3.2-1b", (16, 2048, 32, 8, 64, 8192), stretch=32.0, tied=True),
        _llama3("llama-3.2-3b", (28, 3072, 24, 8, 128, 8192), stretch=32.0, tied=True),
        _smollm2("smollm2-135m", (30, 576, 9, 3, 1536), rope_base=100_000.0),
        _smollm2("smollm2-360m", (32, 960, 15, 5, 2560), rope_base=100_000.0),
        _smollm2("smollm2-1.7b", (24, 2048, 32, 32, 8192), rope_base=130_000.0),
        _qwen3("qwen3-0.6b", (28, 1024, 16, 8, 3072), tied=True),
        _qwen3("qwen3-1.7b", (28, 2048, 16, 8, 6144), tied=True),
        _qwen3("qwen3-4b", (36, 2560, 32, 8, 9728), tied=True),
        _qwen3("qwen3-8b", (36, 4096, 32, 8, 12_288)),
        _qwen3("qwen3-14b", (40, 5120, 40, 8, 17_408)),
        _qwen3("qwen3-32b", (64, 5120, 64, 8, 25_600)),
        _qwen3(
            "qwen3-30b-a3b",
            (48, 2048, 32, 4, 6144),
            experts=ExpertShape(experts=128, active=8, width=768),
        ),
        DEEPSEEK_V2_LITE,
        DEEPSEEK_V2,
        DEEPSEEK_V3,
        GLM_4_7_FLASH,
    )
)
