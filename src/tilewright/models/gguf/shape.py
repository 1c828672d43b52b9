"""The shape of a model from the metadata of its GGUF file."""

from tilewright.errors import ModelFileError
from tilewright.models.gguf.file import GgufFile
from tilewright.models.rope import DivisorScaling, RopeSpec, Scaling
from tilewright.models.shape import MOST_LAYERS, GqaShape

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
