"""English text that ships with Python: the topics of ``help()``, about 700 KB."""

import hashlib
import platform
from dataclasses import dataclass
from pydoc_data.topics import topics

import numpy as np

from tilewright.errors import UsageError
from tilewright.models import Tokenizer

LETTERS_PER_TOKEN = 8  # more than a token has on the average, so that a cut is long enough


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text and where it comes from."""

    name: str
    content: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content.encode()).hexdigest()


def python_topics() -> PlainText:
    """In alphabetical order. Another version of Python has another text, and another hash."""
    content = "\n\n".join(topics[name].strip() for name in sorted(topics))
    return PlainText(f"pydoc_data.topics of Python {platform.python_version()}", content)


def cut_tokens(
    text: PlainText, tokenizer: Tokenizer, rng: np.random.Generator, num_tokens: int
) -> list[int]:
    """So many tokens from the beginning of a paragraph that chance picks."""
    length = LETTERS_PER_TOKEN * num_tokens
    last = len(text.content) - length
    if last < 0:
        found, expected = f"{num_tokens} tokens", f"at most what {text.name} has"
        raise UsageError("context", found, expected, "lower --context")
    start = text.content.find("\n\n", int(rng.integers(0, last + 1)))
    start = last if not 0 <= start <= last else start + 2
    tokens = tokenizer.encode(text.content[start : start + length])
    if len(tokens) < num_tokens:
        found = f"{len(tokens)} tokens in {length} letters of {text.name}"
        raise UsageError("context", found, f"{num_tokens}", "choose another --seed")
    return tokens[:num_tokens]
