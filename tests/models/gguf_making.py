"""Small GGUF models for tests, written by the library that defines the format."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

__all__ = ("SIZES", "TOKENS", "tiny_metadata", "tiny_tensors", "write_gguf")

SIZES = {
    "block_count": 2,
    "context_length": 64,
    "embedding_length": 32,
    "feed_forward_length": 64,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
}
LETTERS = [chr(code) for code in (*range(0x21, 0x7F), 0x120)]
TOKENS = ["<|endoftext|>", "<|im_end|>", *LETTERS, "he", "Ġt", "Ġthe"]
Floats = npt.NDArray[np.float32]


def tiny_metadata(architecture: str = "llama") -> dict[str, Any]:
    sizes: dict[str, Any] = {f"{architecture}.{key}": value for key, value in SIZES.items()}
    return sizes | {
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{architecture}.rope.freq_base": 10_000.0,
        "general.architecture": architecture,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [3, 3] + [1] * (len(TOKENS) - 2),
        "tokenizer.ggml.merges": ["h e", "Ġ t", "Ġt he"],
        "tokenizer.ggml.eos_token_id": 1,
    }


def tiny_tensors(seed: int = 0, *, query_key_norm: bool = False) -> dict[str, Floats]:
    rng = np.random.default_rng(seed)
    hidden, ffn, dim = 32, 64, 8

    def drawn(*shape: int) -> Floats:
        values: Floats = rng.standard_normal(shape, dtype=np.float32) / np.float32(shape[-1] ** 0.5)
        return values

    found = {"token_embd.weight": drawn(len(TOKENS), hidden), "output_norm.weight": drawn(hidden)}
    found["token_embd.weight"][:2] = 0.0  # the ends of a text are never the likeliest
    for layer in range(2):
        part = f"blk.{layer}."
        found |= {
            part + "attn_norm.weight": 1 + drawn(hidden),
            part + "attn_q.weight": drawn(4 * dim, hidden),
            part + "attn_k.weight": drawn(2 * dim, hidden),
            part + "attn_v.weight": drawn(2 * dim, hidden),
            part + "attn_output.weight": drawn(hidden, 4 * dim),
            part + "ffn_norm.weight": 1 + drawn(hidden),
            part + "ffn_gate.weight": drawn(ffn, hidden),
            part + "ffn_up.weight": drawn(ffn, hidden),
            part + "ffn_down.weight": drawn(hidden, ffn),
        }
        if query_key_norm:
            found |= {part + f"attn_{role}_norm.weight": 1 + drawn(dim) for role in "qk"}
    return found


def write_gguf(
    path: Path,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, npt.NDArray[Any]],
    kinds: Mapping[str, gguf.GGMLQuantizationType] | None = None,
) -> Path:
    """``kinds`` says which tensors are quantised, and how."""
    writer = gguf.GGUFWriter(path, str(metadata["general.architecture"]))
    for key, value in metadata.items():
        if key != "general.architecture":
            _add(writer, key, value)
    for name, values in tensors.items():
        kind = (kinds or {}).get(name)
        if kind is None:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case _:
            writer.add_array(key, value)
