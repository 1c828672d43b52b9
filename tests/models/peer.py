"""Another implementation of the same models, by name: its types are not ours to check."""

from importlib import import_module
from typing import Any

from tilewright.models.shape import GqaShape, MlaShape

__all__ = ("peer_config", "transformers")

transformers: Any = import_module("transformers")


def peer_config(shape: GqaShape | MlaShape, **more: Any) -> Any:
    """Its configuration for a model of the same sizes."""
    sizes: dict[str, Any] = {
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.ffn,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.query_heads,
        "tie_word_embeddings": shape.tied,
        "rms_norm_eps": shape.norm_eps,
        "max_position_embeddings": shape.context,
        "rope_parameters": {"rope_type": "default", "rope_theta": shape.rope.base},
    } | more
    if isinstance(shape, MlaShape):
        return transformers.DeepseekV3Config(**(sizes | _latent_sizes(shape) | more))
    sizes |= {"num_key_value_heads": shape.kv_heads, "head_dim": shape.head_dim}
    experts = shape.experts
    if experts is not None:
        sizes |= {"num_experts": experts.experts, "moe_intermediate_size": experts.width}
        sizes |= {"num_experts_per_tok": experts.active, "norm_topk_prob": experts.normalized}
        return transformers.Qwen3MoeConfig(**sizes)
    return (transformers.Qwen3Config if shape.query_key_norm else transformers.LlamaConfig)(**sizes)


def _latent_sizes(shape: MlaShape) -> dict[str, Any]:
    sizes: dict[str, Any] = {
        "num_key_value_heads": shape.query_heads,
        "q_lora_rank": shape.q_lora_rank,
        "kv_lora_rank": shape.kv_lora_rank,
        "qk_nope_head_dim": shape.qk_nope_head_dim,
        "qk_rope_head_dim": shape.qk_rope_head_dim,
        "v_head_dim": shape.v_head_dim,
        "first_k_dense_replace": shape.layers,
    }
    experts = shape.experts
    if experts is not None:
        sizes |= {
            "n_routed_experts": experts.experts,
            "n_shared_experts": experts.shared,
            "num_experts_per_tok": experts.active,
            "moe_intermediate_size": experts.width,
            "first_k_dense_replace": experts.dense_layers,
            "n_group": experts.groups,
            "topk_group": experts.active_groups,
            "norm_topk_prob": experts.normalized,
            "routed_scaling_factor": experts.scaling,
        }
    return sizes
