"""Cases of SmolLM2, a real language model: plain text that goes on, and facts inside it."""

import hashlib

import numpy as np

from tilewright.attention.graph import Geometry
from tilewright.errors import UsageError
from tilewright.evaluation.source.base import Case, SourceSpec, check_fits, generator_of
from tilewright.evaluation.source.model_case import record_case
from tilewright.evaluation.text import cut_tokens, python_topics
from tilewright.evaluation.words import Target
from tilewright.models import LanguageModel, load_smollm2, run_prompt
from tilewright.models.smollm2 import smollm2_path
from tilewright.records.attention.compare import SourceFigures
from tilewright.serving.decode import geometry_of, kv_heads_of

PROJECTS = ("Aurora", "Bamboo", "Cedar", "Delta", "Ember", "Falcon", "Garnet", "Harbor")
CODE_DIGITS = 4


class SmolLM2Source:
    """What both kinds of cases share: the model, the text, and their hashes."""

    name: str

    def __init__(self, spec: SourceSpec, model: LanguageModel | None = None) -> None:
        self._spec = spec
        self._text = python_topics()
        self._model = load_smollm2() if model is None else model
        check_fits(self.name, spec, self._model.shape.context)

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

    @property
    def geometry(self) -> Geometry:
        return geometry_of(self._model.shape, self._spec.page_size)

    @property
    def num_layers(self) -> int:
        return self._model.shape.layers

    @property
    def num_kv_heads(self) -> int:
        return kv_heads_of(self._model.shape)


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
            model.weights,
            prompt,
            given[:-1],
            [Target(step, token) for step, token in enumerate(given[1:])],
            page_size=spec.page_size,
            reserved=spec.reserved,
        )


class NeedleSource(SmolLM2Source):
    """A fact somewhere in the text; it is asked for when the context has been taken in.

    Question and answer are decoded under the flow. Cases put the fact at different depths.
    """

    name = "needle"

    def draw(self, index: int, *, kept_queries: int) -> Case:
        spec, model = self._spec, self._model
        rng, encode = generator_of(spec, index), model.tokenizer.encode
        sentence, code = _draw_fact(rng, index)
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
            model.weights,
            run_prompt(model.weights, context, kept_queries=kept_queries),
            question + answer[:-1],
            targets,
            needles=[range(len(targets))],
            page_size=spec.page_size,
            reserved=spec.reserved,
        )


def _draw_fact(rng: np.random.Generator, index: int) -> tuple[str, str]:
    """A sentence without its end, and the end. Every digit is a token of its own."""
    code = "".join(map(str, rng.integers(0, 10, CODE_DIGITS)))
    return f"The secret code of project {PROJECTS[index % len(PROJECTS)]} is ", code
