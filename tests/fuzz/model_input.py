"""Model files with random changes, GGUF and folders of safetensors: a text is written with each."""

import json
import shutil
import struct
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType
from safetensors import SafetensorError, safe_open

from tests.fuzz.command import run_command
from tests.fuzz.generator import FindingError, Random
from tests.fuzz.mutation import NUMBERS, mutated_bytes, mutated_json
from tests.models.gguf_making import TOKENS, tiny_metadata, tiny_tensors, write_gguf
from tilewright.errors import ModelFileError
from tilewright.models.gguf.file import open_gguf
from tilewright.models.safetensors.file import read_header
from tilewright.models.weight_file import open_weight_file

__all__ = ("run_gguf", "run_safetensors", "write_tiny_gguf")

GENERATE = (
    "generate", "--prompt", "the cat", "--max-tokens", "2", "--page-size", "4", "--json",
)  # fmt: skip


@cache
def base_gguf() -> tuple[bytes, ...]:
    """Return small valid files of both architectures, and one of quantised tensors."""
    folder = Path(mkdtemp(prefix="tilewright-fuzz-base-"))
    try:
        llama = write_gguf(folder / "a.gguf", tiny_metadata(), tiny_tensors())
        tensors = tiny_tensors(query_key_norm=True)
        qwen = write_gguf(folder / "b.gguf", tiny_metadata("qwen3"), tensors)
        kinds = dict.fromkeys(tiny_tensors(), GGMLQuantizationType.Q8_0)
        small = write_gguf(folder / "c.gguf", tiny_metadata(), tiny_tensors(), kinds)
        return llama.read_bytes(), qwen.read_bytes(), small.read_bytes()
    finally:
        shutil.rmtree(folder)


def write_tiny_gguf(path: Path) -> None:
    """Write a valid small model."""
    path.write_bytes(base_gguf()[0])


def run_gguf(rng: Random, folder: Path) -> None:
    """Write a text with a changed file, or read a file that shrinks meanwhile."""
    del folder
    file = Path("model.gguf")
    if rng.random() < 0.1:
        _read_while_it_shrinks(rng, file)
        return
    base = rng.choice(base_gguf())
    header = base.index(b"output_norm.weight")  # counts, keys and sizes are before the values
    if rng.random() < 0.8:
        file.write_bytes(mutated_bytes(rng, base[:header]) + base[header:])
    else:
        file.write_bytes(mutated_bytes(rng, base))
    run_command(*GENERATE, "--model", str(file))


def _read_while_it_shrinks(rng: Random, file: Path) -> None:
    content = rng.choice(base_gguf())
    file.write_bytes(content)
    opened = open_gguf(file)
    with file.open("r+b") as changed:
        changed.truncate(rng.randrange(len(content)))
    for name, tensor in opened.tensors.items():
        try:
            opened.read(name, tensor.shape)
        except ModelFileError:
            continue


CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "vocab_size": len(TOKENS),
    "max_position_embeddings": 64,
    "tie_word_embeddings": True,
    "eos_token_id": 1,
}
MLA_CONFIG = CONFIG | {
    "model_type": "deepseek_v3",
    "q_lora_rank": None,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
    "first_k_dense_replace": 1,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "n_shared_experts": 1,
    "n_group": 2,
    "topk_group": 1,
    "scoring_func": "sigmoid",
    "topk_method": "noaux_tc",
    "routed_scaling_factor": 2.5,
    "num_nextn_predict_layers": 1,
    "rope_scaling": {
        "type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 64,
        "beta_fast": 32,
        "beta_slow": 1,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    },
}
NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOKENIZER: dict[str, Any] = {
    "version": "1.0",
    "added_tokens": [],
    "pre_tokenizer": {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True,
    },
    "decoder": {
        "type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True,
    },
    "model": {
        "type": "BPE", "unk_token": None, "fuse_unk": False, "byte_fallback": False,
        "vocab": {token: number for number, token in enumerate(TOKENS)},
        "merges": ["h e", "Ġ t", "Ġt he"],
    },
}  # fmt: skip


@cache
def base_safetensors() -> tuple[dict[str, Any], bytes]:
    """Return the header and the values of a small valid file."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    values = b""
    for name, tensor in tiny_tensors().items():
        data = np.ascontiguousarray(tensor, "<f4").tobytes()
        place = [len(values), len(values) + len(data)]
        header[_name_of(name)] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": place}
        values += data
    return header, values


def _name_of(name: str) -> str:
    if name in NAMES:
        return NAMES[name]
    _, layer, role, ending = name.split(".")
    return f"model.layers.{layer}.{NAMES[role]}.{ending}"


def run_safetensors(rng: Random, folder: Path) -> None:
    """Write a text with a folder, one of whose files is changed."""
    del folder
    header, values = base_safetensors()
    config = CONFIG if rng.random() < 0.8 else MLA_CONFIG
    documents = {"config.json": config, "tokenizer.json": TOKENIZER, "header": header}
    changed = rng.choice((*documents, "header", "config.json", "weights", "index"))
    if changed in documents:
        documents[changed] = mutated_json(rng, documents[changed])
    head = json.dumps(documents.pop("header")).encode("utf-8", "surrogatepass")
    length = rng.choice(NUMBERS) % 2**64 if rng.random() < 0.05 else len(head)
    content = struct.pack("<Q", length) + head + values
    if changed == "weights":
        content = mutated_bytes(rng, content)
    model = Path("model")
    model.mkdir()
    for name, document in documents.items():
        (model / name).write_bytes(json.dumps(document).encode("utf-8", "surrogatepass"))
    (model / "model.safetensors").write_bytes(content)
    if changed == "index":
        index = {"metadata": {}, "weight_map": dict.fromkeys(header, "model.safetensors")}
        text = json.dumps(mutated_json(rng, index))
        (model / "model.safetensors.index.json").write_text(text, "utf-8", "surrogatepass")
    _compare_with_library(model / "model.safetensors")
    run_command(*GENERATE, "--model", "model")


def _compare_with_library(file: Path) -> None:
    """Refuse what the library of the format accepts, or the reverse: a finding."""
    try:
        read_header(open_weight_file(file, "a model"))
        refusal = None
    except ModelFileError as error:
        refusal = error
    try:
        safe_open(file, framework="numpy")
        other = None
    except SafetensorError as error:
        other = error
    if (refusal is None) != (other is None):
        raise FindingError(f"our header reader says: {refusal}\nthe library: {other}")
