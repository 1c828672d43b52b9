"""Cases of SmolLM2, a real language model: plain text that goes on, and facts inside it.

The text ships with Python: the topics of ``help()``, about 700 KB.
"""

import hashlib
import platform
from dataclasses import dataclass
from pydoc_data.topics import topics

import numpy as np

from tilewright.errors import UsageError
from tilewright.evaluation.source.base import (
    Case,
    ModelSource,
    SourceSpec,
    generator_of,
    record_case,
)
from tilewright.evaluation.words import Target
from tilewright.models import LanguageModel, Tokenizer, load_smollm2, run_prompt
from tilewright.models.find import smollm2_path
from tilewright.records.attention.compare import SourceFigures

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


PROJECTS = ("Aurora", "Bamboo", "Cedar", "Delta", "Ember", "Falcon", "Garnet", "Harbor")
CODE_DIGITS = 4


class SmolLM2Source(ModelSource):
    """What both kinds of cases share: the model, the text, and their hashes."""

    name: str

    def __init__(self, spec: SourceSpec, model: LanguageModel | None = None) -> None:
        self._text = python_topics()
        self._model = load_smollm2() if model is None else model
        super().__init__(self.name, spec, self._model.shape)

    @property
    def figures(self) -> SourceFigures:
        with smollm2_path().open("rb") as file:
            weights = hashlib.file_digest(file, "sha256").hexdigest()
        return SourceFigures(
            name=self.name,
            model=self._model.shape.name,
            model_hash=weights,
            text=self._text.name,
            text_hash=self._text.sha256,
        )


class TextSource(SmolLM2Source):
    """A piece of text; every token behind the context is to be foreseen."""

    name = "smollm2"

    def draw(self, index: int, *, kept_queries: int) -> Case:
        spec, model = self._spec, self._model
        rng = generator_of(spec, index)
        tokens = cut_tokens(self._text, model.tokenizer, rng, spec.context + spec.steps + 1)
        prompt = run_prompt(model.weights, tokens[: spec.context], kept_queries=kept_queries)
        given = tokens[spec.context :]
        return record_case(
            spec,
            model.weights,
            prompt,
            given[:-1],
            [Target(step, token) for step, token in enumerate(given[1:])],
        )


class NeedleSource(SmolLM2Source):
    """A fact somewhere in the text; it is asked for when the context has been taken in.

    Question and answer are decoded under the flow. Cases put the fact at different depths.
    """

    name = "needle"

    def draw(self, index: int, *, kept_queries: int) -> Case:
        spec, model = self._spec, self._model
        rng, encode = generator_of(spec, index), model.tokenizer.encode
        sentence = f"The secret code of project {PROJECTS[index % len(PROJECTS)]} is "
        code = "".join(map(str, rng.integers(0, 10, CODE_DIGITS)))  # each digit is a token
        fact, question, answer = map(
            encode, (f"\n\n{sentence}{code}.\n\n", f"\n\n{sentence}", code)
        )
        if len(question) + len(answer) - 1 > spec.steps:
            found = f"{spec.steps} steps"
            expected = f"{len(question) + len(answer) - 1} for the question and its answer"
            raise UsageError("source needle", found, f"at least {expected}", "raise --steps")
        filler = cut_tokens(self._text, model.tokenizer, rng, spec.context - len(fact))
        depth = len(filler) * (2 * index + 1) // (2 * spec.cases)
        context = filler[:depth] + fact + filler[depth:]
        first = len(question) - 1  # the last token of the question foretells the answer
        targets = [Target(first + place, token) for place, token in enumerate(answer)]
        return record_case(
            spec,
            model.weights,
            run_prompt(model.weights, context, kept_queries=kept_queries),
            question + answer[:-1],
            targets,
            needles=[range(len(targets))],
        )
