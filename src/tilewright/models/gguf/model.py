"""Models from GGUF files: their shape by the metadata, their weights and their tokenizer."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tilewright.models.build import Tensors, build_weights
from tilewright.models.gguf.file import GgufFile, open_gguf
from tilewright.models.gguf.tokenizer import tokenizer_of_gguf
from tilewright.models.model import LanguageModel
from tilewright.models.rope import DivisorScaling, RopeSpec, Scaling
from tilewright.models.shape import MOST_LAYERS, GqaShape
from tilewright.models.weight_file import Entries

ARCHITECTURES = ("llama", "qwen3")
ROPE_DIVISORS = "rope_freqs.weight"

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


def shape_of_gguf(file: GgufFile) -> GqaShape:
    """Raises ModelFileError for architectures and variants that the forward pass does not know."""
    facts = _facts(file)
    heads = facts.count("attention.head_count", least=1)
    hidden = facts.count("embedding_length", least=1)
    head_dim = facts.count("attention.key_length", hidden // heads, least=1)
    facts.check("attention.value_length", head_dim)
    facts.check("rope.dimension_count", head_dim)
    facts.check("expert_count", 0)
    return GqaShape(
        name=str(file.metadata.get("general.name", file.path.stem)),
        layers=facts.count("block_count", least=1, most=MOST_LAYERS),
        hidden=hidden,
        query_heads=heads,
        kv_heads=facts.count("attention.head_count_kv", heads, least=1),
        head_dim=head_dim,
        ffn=facts.count("feed_forward_length", least=1),
        vocab=_num_embeddings(file),
        context=facts.count("context_length", least=1),
        norm_eps=facts.number("attention.layer_norm_rms_epsilon", is_positive=True),
        rope=RopeSpec(
            base=facts.number("rope.freq_base", 10_000.0, is_positive=True),
            width=head_dim,
            scaling=_rope_scaling(file, head_dim),
        ),
        tied="output.weight" not in file.tensors,
        query_key_norm=facts.prefix == "qwen3.",
    )


def _facts(file: GgufFile) -> Entries:
    """Return the metadata of the file's architecture."""
    entries = file.entries
    architecture = str(file.metadata.get("general.architecture"))
    if architecture not in ARCHITECTURES:
        found, expected = f"architecture {architecture!r}", f"one of {', '.join(ARCHITECTURES)}"
        raise entries.fail("general.architecture", found, expected)
    if file.metadata.get("split.count", 1) not in (0, 1):
        raise entries.fail("split.count", "a part of a model", "a whole one", "join the parts")
    facts = entries.below(f"{architecture}.")
    scaling = facts.value("rope.scaling.type", "none")
    if scaling != "none":
        raise entries.fail("rope.scaling.type", repr(scaling), "none")
    return facts


def _num_embeddings(file: GgufFile) -> int:
    """Return the size of the vocabulary: as many tokens as there are embeddings."""
    tensor = file.tensors.get("token_embd.weight")
    if tensor is None:
        raise file.entries.fail("token_embd.weight", "no such tensor", "an embedding")
    return tensor.shape[0]


def _rope_scaling(file: GgufFile, head_dim: int) -> Scaling | None:
    if ROPE_DIVISORS not in file.tensors:
        return None
    return DivisorScaling(tuple(file.read(ROPE_DIVISORS, (head_dim // 2,)).tolist()))


def load_gguf(path: str | Path) -> LanguageModel:
    """Weights are dequantised to float32 once; raises ModelFileError for a file that is wrong."""
    file = open_gguf(path)
    tokenizer = tokenizer_of_gguf(file)
    shape, tensors = shape_of_gguf(file), Tensors(file, NAMES)
    # files of the architecture llama were permuted for pairs side by side, others were not
    pairs = file.metadata["general.architecture"] == "llama"
    weights = build_weights(shape, tensors, pairs=pairs)
    tensors.check_all_read(ignored=(ROPE_DIVISORS,))
    return LanguageModel(weights, tokenizer)
