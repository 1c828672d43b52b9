"""Models from a folder of safetensors files with their configuration and tokenizer."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tilewright.errors import ModelFileError
from tilewright.models.build import Tensors, build_weights
from tilewright.models.model import LanguageModel, Tokenizer, load_library
from tilewright.models.rope import Llama3Scaling, RopeSpec, Scaling, YarnScaling
from tilewright.models.safetensors.file import open_safetensors, read_json
from tilewright.models.shape import (
    MOST_LAYERS,
    ExpertShape,
    GateKind,
    GqaShape,
    MlaShape,
    ModelShape,
)
from tilewright.models.weight_file import Entries
from tilewright.records import read_file

GQA_TYPES = ("llama", "qwen3", "qwen3_moe")
MLA_TYPES = ("deepseek_v2", "deepseek_v3", "glm4_moe_lite")

MAX_TOKENIZER_BYTES = 2**28
LAYER = "model.layers.{layer}."
OUTPUT = "lm_head.weight"
NAMES = MappingProxyType(
    {
        "embedding": "model.embed_tokens.weight",
        "norm": "model.norm.weight",
        "output": OUTPUT,
        "attention_norm": LAYER + "input_layernorm.weight",
        "attention_output": LAYER + "self_attn.o_proj.weight",
        "ffn_norm": LAYER + "post_attention_layernorm.weight",
        "query": LAYER + "self_attn.q_proj.weight",
        "gate": LAYER + "mlp.gate_proj.weight",
        "up": LAYER + "mlp.up_proj.weight",
        "down": LAYER + "mlp.down_proj.weight",
        "router": LAYER + "mlp.gate.weight",
        "router_bias": LAYER + "mlp.gate.e_score_correction_bias",
        "expert_gate": LAYER + "mlp.experts.{expert}.gate_proj.weight",
        "expert_up": LAYER + "mlp.experts.{expert}.up_proj.weight",
        "expert_down": LAYER + "mlp.experts.{expert}.down_proj.weight",
        "shared_gate": LAYER + "mlp.shared_experts.gate_proj.weight",
        "shared_up": LAYER + "mlp.shared_experts.up_proj.weight",
        "shared_down": LAYER + "mlp.shared_experts.down_proj.weight",
        "key": LAYER + "self_attn.k_proj.weight",
        "value": LAYER + "self_attn.v_proj.weight",
        "query_norm": LAYER + "self_attn.q_norm.weight",
        "key_norm": LAYER + "self_attn.k_norm.weight",
        "query_down": LAYER + "self_attn.q_a_proj.weight",
        "query_down_norm": LAYER + "self_attn.q_a_layernorm.weight",
        "query_up": LAYER + "self_attn.q_b_proj.weight",
        "latent_down": LAYER + "self_attn.kv_a_proj_with_mqa.weight",
        "latent_norm": LAYER + "self_attn.kv_a_layernorm.weight",
        "latent_up": LAYER + "self_attn.kv_b_proj.weight",
    }
)
"""Names of tensors by role."""


def shape_of_config(config: Entries, *, tied: bool) -> ModelShape:
    """``tied``: what the files say if the configuration does not."""
    kind = config.text("model_type")
    if kind not in (*GQA_TYPES, *MLA_TYPES):
        expected = f"one of {', '.join((*GQA_TYPES, *MLA_TYPES))}"
        raise config.fail("model_type", repr(kind), expected)
    config.check("hidden_act", "silu")
    for key in ("attention_bias", "mlp_bias", "use_sliding_window", "quantization_config"):
        config.check(key, False)
    common: dict[str, Any] = {
        "name": config.text("_name_or_path", config.path.parent.name) or kind,
        "layers": config.count("num_hidden_layers", most=MOST_LAYERS),
        "hidden": config.count("hidden_size"),
        "query_heads": config.count("num_attention_heads"),
        "ffn": config.count("intermediate_size"),
        "vocab": config.count("vocab_size"),
        "context": config.count("max_position_embeddings"),
        "norm_eps": config.number("rms_norm_eps"),
        "tied": config.flag("tie_word_embeddings", tied),
    }
    return _mla(config, kind, common) if kind in MLA_TYPES else _gqa(config, kind, common)


def _gqa(config: Entries, kind: str, common: dict[str, Any]) -> GqaShape:
    heads = common["query_heads"]
    head_dim = config.count("head_dim", common["hidden"] // max(heads, 1))
    return GqaShape(
        **common,
        kv_heads=config.count("num_key_value_heads", heads),
        head_dim=head_dim,
        rope=_rope(config, head_dim),
        query_key_norm=kind != "llama",
        experts=_qwen_experts(config) if kind == "qwen3_moe" else None,
    )


def _mla(config: Entries, kind: str, common: dict[str, Any]) -> MlaShape:
    rope_dim = config.count("qk_rope_head_dim")
    return MlaShape(
        **common,
        q_lora_rank=config.count("q_lora_rank") if config.has("q_lora_rank") else None,
        kv_lora_rank=config.count("kv_lora_rank"),
        qk_nope_head_dim=config.count("qk_nope_head_dim"),
        qk_rope_head_dim=rope_dim,
        v_head_dim=config.count("v_head_dim"),
        rope=_rope(config, rope_dim),
        experts=_deepseek_experts(config, kind, common["layers"]),
    )


def _qwen_experts(config: Entries) -> ExpertShape:
    config.check("decoder_sparse_step", 1)
    config.check("mlp_only_layers", [])
    name = "num_experts" if config.has("num_experts") else "num_local_experts"  # older, newer
    return ExpertShape(
        experts=config.count(name),
        active=config.count("num_experts_per_tok"),
        width=config.count("moe_intermediate_size"),
        normalized=config.flag("norm_topk_prob", False),
    )


def _deepseek_experts(config: Entries, kind: str, layers: int) -> ExpertShape | None:
    dense_layers = config.count("first_k_dense_replace", 1 if kind == "glm4_moe_lite" else 0)
    if not config.has("n_routed_experts") or dense_layers >= layers:
        return None
    config.check("moe_layer_freq", 1)
    config.check("topk_method", "greedy", "group_limited_greedy", "noaux_tc")
    softmax = kind == "deepseek_v2"
    config.check("scoring_func", "softmax" if softmax else "sigmoid")
    grouped = not softmax or config.text("topk_method", "greedy") == "group_limited_greedy"
    return ExpertShape(
        experts=config.count("n_routed_experts"),
        active=config.count("num_experts_per_tok"),
        width=config.count("moe_intermediate_size"),
        shared=config.count("n_shared_experts", 0),
        dense_layers=dense_layers,
        gate=GateKind.SOFTMAX if softmax else GateKind.SIGMOID,
        groups=config.count("n_group", 1) if grouped else 1,
        active_groups=config.count("topk_group", 1) if grouped else 1,
        normalized=config.flag("norm_topk_prob", False) and not softmax,
        scaling=config.number("routed_scaling_factor", 1.0),
    )


def _rope(config: Entries, width: int) -> RopeSpec:
    """Newer files have ``rope_parameters``, older ones ``rope_theta`` and ``rope_scaling``."""
    parameters = config.part("rope_parameters")
    old = config.part("rope_scaling")
    theta = parameters if parameters.has("rope_theta") else config
    scaling = _scaling(parameters if parameters.has("rope_type") else old)
    return RopeSpec(base=theta.number("rope_theta", 10_000.0), width=width, scaling=scaling)


def _scaling(part: Entries) -> Scaling | None:
    part.check("partial_rotary_factor", 1.0)
    part.check("attention_factor")
    key = "rope_type" if part.has("rope_type") else "type"
    match part.text(key, "default"):
        case "default":
            return None
        case "llama3":
            return Llama3Scaling(
                factor=part.number("factor"),
                low_frequency_factor=part.number("low_freq_factor"),
                high_frequency_factor=part.number("high_freq_factor"),
                original_context=part.count("original_max_position_embeddings"),
            )
        case "yarn":
            return YarnScaling(
                factor=part.number("factor"),
                original_context=part.count("original_max_position_embeddings"),
                beta_fast=part.number("beta_fast", 32.0),
                beta_slow=part.number("beta_slow", 1.0),
                mscale=part.number("mscale", 1.0),
                mscale_all=part.number("mscale_all_dim", 0.0),
            )
        case other:
            raise part.fail(key, repr(other), "default, llama3 or yarn")


def load_safetensors(folder: str | Path) -> LanguageModel:
    """A folder as model hubs lay it out: config.json, tokenizer.json, model*.safetensors."""
    folder = Path(folder)
    entries = read_json(folder / "config.json")
    file = open_safetensors(folder)
    config = Entries(folder / "config.json", "configuration", entries)
    shape = shape_of_config(config, tied=OUTPUT not in file.names)
    tensors = Tensors(file, NAMES)
    pairs = isinstance(shape, MlaShape) and config.flag("rope_interleave", True)
    weights = build_weights(shape, tensors, pairs=pairs)
    # layers behind the last guess at tokens further ahead; a tied model may repeat its embedding
    extra = range(
        shape.layers, shape.layers + config.count("num_nextn_predict_layers", 0, most=MOST_LAYERS)
    )
    tied = (OUTPUT,) if shape.tied else ()
    tensors.check_all_read(ignored=(*tied, *(LAYER.format(layer=layer) for layer in extra)))
    return LanguageModel(weights, _tokenizer(folder, entries, shape.vocab))


def _tokenizer(folder: Path, entries: Mapping[str, Any], vocab: int) -> Tokenizer:
    path = folder / "tokenizer.json"
    library = load_library("tokenizers", where=str(path))
    text = read_file(path, "a tokenizer", ModelFileError, most_bytes=MAX_TOKENIZER_BYTES)
    try:
        made = library.Tokenizer.from_str(text.decode())
    except Exception as error:  # the library raises no narrower class
        fix = "fetch the file again"
        raise ModelFileError(str(path), str(error), "a tokenizer", fix) from error
    ends = entries.get("eos_token_id")
    found: list[Any] = ends if isinstance(ends, list) else [ends]
    if not all(isinstance(end, int) and 0 <= end < vocab for end in found):
        where = f"{folder / 'config.json'}, eos_token_id"
        raise ModelFileError(where, repr(ends), f"tokens below {vocab}", "correct it")
    return Tokenizer(made, frozenset(found))
