"""Models from GGUF files: their shape by the metadata, their weights and their tokenizer."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tilewright.errors import ModelFileError
from tilewright.models.build import Tensors, build_weights
from tilewright.models.gguf.file import GgufFile, open_gguf
from tilewright.models.gguf.tokenizer import tokenizer_of_gguf
from tilewright.models.model import LanguageModel
from tilewright.models.rope import DivisorScaling, RopeSpec, Scaling
from tilewright.models.shape import MOST_LAYERS, GqaShape
from tilewright.models.weights import ModelWeights

ARCHITECTURES = ("llama", "qwen3")
ROPE_DIVISORS = "rope_freqs.weight"


def shape_of_gguf(file: GgufFile) -> GqaShape:
    """Raises ModelFileError for architectures and variants that the forward pass does not know."""
    facts = Facts(file)
    architecture = facts.architecture
    heads = facts.count("attention.head_count")
    hidden = facts.count("embedding_length")
    head_dim = facts.count("attention.key_length", default=hidden // heads)
    facts.check_equal("attention.value_length", head_dim)
    facts.check_equal("rope.dimension_count", head_dim)
    facts.check_equal("expert_count", 0)
    return GqaShape(
        name=facts.name,
        layers=facts.count("block_count", most=MOST_LAYERS),
        hidden=hidden,
        query_heads=heads,
        kv_heads=facts.count("attention.head_count_kv", default=heads),
        head_dim=head_dim,
        ffn=facts.count("feed_forward_length"),
        vocab=facts.vocab,
        context=facts.count("context_length"),
        norm_eps=facts.number("attention.layer_norm_rms_epsilon"),
        rope=RopeSpec(
            base=facts.number("rope.freq_base", default=10_000.0),
            width=head_dim,
            scaling=facts.rope_scaling(head_dim),
        ),
        tied="output.weight" not in file,
        query_key_norm=architecture == "qwen3",
    )


class Facts:
    """Metadata of one architecture, each asked for by its type."""

    def __init__(self, file: GgufFile) -> None:
        self._file = file
        self.architecture = str(file.metadata.get("general.architecture"))
        if self.architecture not in ARCHITECTURES:
            found = f"architecture {self.architecture!r}"
            raise self._fail("general.architecture", found, f"one of {', '.join(ARCHITECTURES)}")
        if file.metadata.get("split.count", 1) not in (0, 1):
            raise self._fail("split.count", "a part of a model", "a whole one", "join the parts")
        scaling = file.metadata.get(f"{self.architecture}.rope.scaling.type", "none")
        if scaling != "none":
            raise self._fail("rope.scaling.type", repr(scaling), "none")

    @property
    def name(self) -> str:
        return str(self._file.metadata.get("general.name", self._file.path.stem))

    @property
    def vocab(self) -> int:
        """As many tokens as there are embeddings."""
        tensor = self._file.tensors.get("token_embd.weight")
        if tensor is None:
            raise self._fail("token_embd.weight", "no such tensor", "an embedding")
        return tensor.shape[0]

    def count(self, key: str, *, default: int | None = None, most: int = 2**31) -> int:
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise self._fail(self._key(key), repr(value), f"a whole number in 1..{most}")
        return value

    def number(self, key: str, *, default: float | None = None) -> float:
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
            raise self._fail(self._key(key), repr(value), "a positive number")
        return float(value)

    def check_equal(self, key: str, expected: int) -> None:
        """Refuse a variant: the key may be missing, or say what we take for granted."""
        value = self._file.metadata.get(self._key(key), expected)
        if value != expected:
            raise self._fail(self._key(key), repr(value), f"{expected}")

    def rope_scaling(self, head_dim: int) -> Scaling | None:
        if ROPE_DIVISORS not in self._file:
            return None
        divisors = self._file.read(ROPE_DIVISORS, (head_dim // 2,))
        return DivisorScaling(tuple(divisors.tolist()))

    def _value(self, key: str, default: int | float | None) -> object:
        found = self._file.metadata.get(self._key(key), default)
        if found is None:
            raise self._fail(self._key(key), "no such entry", "one in the metadata")
        return found

    def _key(self, key: str) -> str:
        return f"{self.architecture}.{key}"

    def _fail(
        self, key: str, found: str, expected: str, fix: str = "choose another model"
    ) -> ModelFileError:
        return ModelFileError(f"{self._file.path}, {key}", found, expected, fix)


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
