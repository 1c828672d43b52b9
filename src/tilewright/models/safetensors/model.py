"""Models from a folder of safetensors files with their configuration and tokenizer."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tilewright.errors import ModelFileError
from tilewright.models.build import build_weights
from tilewright.models.library import load_library
from tilewright.models.model import LanguageModel
from tilewright.models.safetensors.file import SafetensorsFile, open_safetensors, read_json
from tilewright.models.safetensors.shape import Config, shape_of_config
from tilewright.models.shape import MOST_LAYERS, MlaShape
from tilewright.models.tensors import Tensors
from tilewright.models.tokenizer import Tokenizer
from tilewright.models.weights import ModelWeights
from tilewright.records import read_file

MAX_TOKENIZER_BYTES = 2**28
LAYER = "model.layers.{layer}."
OUTPUT = "lm_head.weight"
COMMON = {
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
}
GQA_NAMES: Mapping[str, str] = MappingProxyType(
    COMMON
    | {
        "key": LAYER + "self_attn.k_proj.weight",
        "value": LAYER + "self_attn.v_proj.weight",
        "query_norm": LAYER + "self_attn.q_norm.weight",
        "key_norm": LAYER + "self_attn.k_norm.weight",
    }
)
MLA_NAMES: Mapping[str, str] = MappingProxyType(
    COMMON
    | {
        "query_down": LAYER + "self_attn.q_a_proj.weight",
        "query_down_norm": LAYER + "self_attn.q_a_layernorm.weight",
        "query_up": LAYER + "self_attn.q_b_proj.weight",
        "latent_down": LAYER + "self_attn.kv_a_proj_with_mqa.weight",
        "latent_norm": LAYER + "self_attn.kv_a_layernorm.weight",
        "latent_up": LAYER + "self_attn.kv_b_proj.weight",
    }
)


def load_safetensors(folder: str | Path) -> LanguageModel:
    """A folder as model hubs lay it out: config.json, tokenizer.json, model*.safetensors."""
    folder = Path(folder)
    entries = read_json(folder / "config.json")
    weights = _weights(open_safetensors(folder), Config(folder / "config.json", entries))
    return LanguageModel(weights, _tokenizer(folder, entries, weights.shape.vocab))


def _weights(file: SafetensorsFile, config: Config) -> ModelWeights:
    shape = shape_of_config(config, tied=OUTPUT not in file.names)
    is_latent = isinstance(shape, MlaShape)
    tensors = Tensors(file, MLA_NAMES if is_latent else GQA_NAMES)
    pairs = is_latent and config.flag("rope_interleave", True)
    weights = build_weights(shape, tensors, pairs=pairs)
    # layers behind the last guess at tokens further ahead; a tied model may repeat its embedding
    extra = range(
        shape.layers, shape.layers + config.count("num_nextn_predict_layers", 0, MOST_LAYERS)
    )
    tied = (OUTPUT,) if shape.tied else ()
    tensors.check_all_read(ignored=(*tied, *(LAYER.format(layer=layer) for layer in extra)))
    return weights


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
