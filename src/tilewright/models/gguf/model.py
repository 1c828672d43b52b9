"""Models from GGUF files: their weights and their tokenizer."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tilewright.models.build import build_weights
from tilewright.models.gguf.file import GgufFile, open_gguf
from tilewright.models.gguf.shape import ROPE_DIVISORS, shape_of_gguf
from tilewright.models.gguf.tokenizer import tokenizer_of_gguf
from tilewright.models.model import LanguageModel
from tilewright.models.tensors import Tensors
from tilewright.models.weights import ModelWeights

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "embedding": "token_embd.weight",
        "norm": "output_norm.weight",
        "output": "output.weight",
        "attention_norm": "blk.{layer}.attn_norm.weight",
        "query": "blk.{layer}.attn_q.weight",
        "key": "blk.{layer}.attn_k.weight",
        "value": "blk.{layer}.attn_v.weight",
        "query_norm": "blk.{layer}.attn_q_norm.weight",
        "key_norm": "blk.{layer}.attn_k_norm.weight",
        "attention_output": "blk.{layer}.attn_output.weight",
        "ffn_norm": "blk.{layer}.ffn_norm.weight",
        "gate": "blk.{layer}.ffn_gate.weight",
        "up": "blk.{layer}.ffn_up.weight",
        "down": "blk.{layer}.ffn_down.weight",
    }
)


def load_gguf(path: str | Path) -> LanguageModel:
    """Weights are dequantised to float32 once; raises ModelFileError for a file that is wrong."""
    file = open_gguf(path)
    tokenizer = tokenizer_of_gguf(file)
    return LanguageModel(weights_of_gguf(file), tokenizer)


def weights_of_gguf(file: GgufFile) -> ModelWeights:
    shape = shape_of_gguf(file)
    tensors = Tensors(file, NAMES)
    # files of the architecture llama were permuted for pairs side by side, others were not
    pairs = file.metadata["general.architecture"] == "llama"
    weights = build_weights(shape, tensors, pairs=pairs)
    tensors.check_all_read(ignored=(ROPE_DIVISORS,))
    return weights
