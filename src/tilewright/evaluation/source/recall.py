"""Associative recall by the small model that ships with the package: no text, no download."""

import hashlib
from importlib.resources import files

from tilewright.errors import UsageError
from tilewright.evaluation.source.base import (
    Case,
    ModelSource,
    SourceSpec,
    generator_of,
    record_case,
)
from tilewright.evaluation.words import Target
from tilewright.models.dense import run_prompt
from tilewright.models.recall import NUM_KEYS, RECALL_SHAPE, KeySmear, draw_recall, load_recall
from tilewright.records.attention.compare import SourceFigures


class RecallSource(ModelSource):
    """A context is pairs; a step is a key that comes again, or its value: half of them answer."""

    def __init__(self, spec: SourceSpec) -> None:
        if spec.context % 2 or spec.context > 2 * NUM_KEYS:
            expected = f"an even number up to {2 * NUM_KEYS}: pairs of a key and its value"
            found = f"a context of {spec.context} tokens"
            raise UsageError("source recall", found, expected, "change --context")
        if not 2 <= spec.steps <= spec.context:
            found, expected = f"{spec.steps} steps", f"2 to {spec.context}, as many as there are"
            raise UsageError("source recall", found, expected, "change --steps")
        super().__init__("recall", spec, RECALL_SHAPE)
        self._model = load_recall()

    @property
    def figures(self) -> SourceFigures:
        weights = files("tilewright.models").joinpath("data/recall.safetensors").read_bytes()
        return SourceFigures(
            name="recall",
            model=RECALL_SHAPE.name,
            model_hash=hashlib.sha256(weights).hexdigest(),
            text=None,
            text_hash=None,
        )

    def draw(self, index: int, *, kept_queries: int) -> Case:
        spec, model = self._spec, self._model
        task = draw_recall(
            generator_of(spec, index), num_pairs=spec.context // 2, num_asked=spec.steps // 2
        )
        tokens, smear = task.tokens.tolist(), KeySmear(model.share)
        prompt = run_prompt(
            model.weights, tokens[: spec.context], kept_queries=kept_queries, around=smear.around
        )
        targets = [
            Target(int(place) - spec.context, int(answer))
            for place, answer in zip(task.asked, task.answers, strict=True)
        ]
        return record_case(
            spec,
            model.weights,
            prompt,
            tokens[spec.context :],
            targets,
            needles=[range(place, place + 1) for place in range(len(targets))],
            new_wrapper=lambda: smear.copy().around,
        )
