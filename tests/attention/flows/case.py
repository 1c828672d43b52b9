"""What a test of a ready flow is made of: a request, a flow, and the rule on paper."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tests.attention.oracle_flows.decode import (
    Array,
    Decode,
    Found,
    Moment,
    Score,
    attend,
    run_scores,
)
from tests.attention.oracle_ops.graph import Request
from tilewright.attention.flow import FlowBase
from tilewright.attention.graph import DType, FlowKind, Geometry

KV_HEADS, QUERY_HEADS, WIDTH, ROPE = 2, 3, 16, 4
STEPS = 5


class Expected(NamedTuple):
    """Of one step and KV head: pages of each query head (one list if all read the same), output,
    and the scores of finished pages if the flow ranks by exactly these."""

    pages: list[list[int]]
    out: Array
    scores: Array | None = None


ByHead = list[list[Expected]]  # steps of each KV head
Paper = Callable[[list[Decode], Array], ByHead]
"""A rule on all KV heads of a request, with the queries of its prompt [heads, P, G, D]."""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    build: Callable[[], FlowBase]
    paper: Paper
    block_size: int = 8
    prompt_pages: int = 9
    budget: int = 3

    def __str__(self) -> str:
        return self.name

    @property
    def geometry(self) -> Geometry:
        dtypes = {
            "kv_dtype": DType.FLOAT32,
            "query_dtype": DType.FLOAT32,
            "field_dtype": DType.FLOAT32,
        }
        if self.build().kind is FlowKind.MLA:
            return Geometry.mla(
                page_size=self.block_size,
                kv_lora_rank=WIDTH - ROPE,
                qk_rope_head_dim=ROPE,
                query_heads=QUERY_HEADS,
                **dtypes,
            )
        return Geometry.gqa(
            page_size=self.block_size, head_dim=WIDTH, query_heads=QUERY_HEADS, **dtypes
        )

    @property
    def num_kv_heads(self) -> int:
        return 1 if self.build().kind is FlowKind.MLA else KV_HEADS


def request_of(case: Case, seed: int) -> Request:
    """A prompt that ends inside a page; the steps complete that page and begin another."""
    generator = np.random.default_rng(seed)
    heads = case.num_kv_heads
    prompt = case.prompt_pages * case.block_size - 3
    total = prompt + STEPS

    def drawn(*shape: int) -> Array:
        """Exact in float32, so that all writings see the same numbers."""
        return generator.normal(size=shape).astype(np.float32).astype(np.float64)

    return Request(
        keys=drawn(heads, total, WIDTH),
        values=drawn(heads, total, WIDTH),
        queries=2.0 * drawn(heads, STEPS, QUERY_HEADS, WIDTH),
        prompt_tokens=prompt,
        budget=case.budget,
        prompt_queries=2.0 * drawn(heads, prompt, QUERY_HEADS, WIDTH),
    )


def decodes_of(case: Case, request: Request) -> list[Decode]:
    latent = case.geometry.kind is FlowKind.MLA
    return [
        Decode(
            keys=request.keys[head],
            values=request.keys[head, :, : WIDTH - ROPE] if latent else request.values[head],
            queries=request.queries[head],
            prompt_tokens=request.prompt_tokens,
            block_size=case.block_size,
            budget=request.budget,
            first_reserved=request.first_reserved,
            last_reserved=request.last_reserved,
            head=head,
        )
        for head in range(case.num_kv_heads)
    ]


def plain(found: list[Found], *, scores: bool) -> list[Expected]:
    return [Expected([step.pages], step.out, step.scores if scores else None) for step in found]


def scored(score: Score) -> Paper:
    """A rule that gives a score a page, head by head."""
    return by_head(lambda decode, _: run_scores(decode, score), scores=True)


def by_head(run: Callable[[Decode, Array], list[Found]], *, scores: bool = False) -> Paper:
    """A rule on the whole decode of a KV head, with the queries of its prompt."""

    def paper(decodes: list[Decode], prompt: Array) -> ByHead:
        return [plain(run(decode, prompt[decode.head]), scores=scores) for decode in decodes]

    return paper


def at_moments(rule: Callable[..., tuple[object, Array]]) -> Paper:
    """A rule that gives pages and output at a moment."""

    def paper(decodes: list[Decode], _: Array) -> ByHead:
        out: ByHead = []
        for decode in decodes:
            steps = []
            for step in range(len(decode.queries)):
                pages, result = rule(decode.moment(step))
                steps.append(Expected(_lists(pages), result))
            out.append(steps)
        return out

    return paper


def reading(rule: Callable[[Moment], list[int]]) -> Paper:
    """A rule that only names the pages."""

    def at(moment: Moment) -> tuple[list[int], Array]:
        pages = rule(moment)
        return pages, attend(moment, pages)[0]

    return at_moments(at)


def _lists(pages: object) -> list[list[int]]:
    assert isinstance(pages, list)
    return pages if isinstance(pages[0], list) else [pages]


def longer(request: Request, steps: int) -> Request:
    """The same request, cut after ``steps`` decode steps."""
    return replace(request, queries=request.queries[:, :steps])
