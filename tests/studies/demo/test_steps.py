"""Quality of a decode step against a plain loop over tokens."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.attention.graph import Geometry
from tilewright.serving.model_flow import trace_for_model
from tilewright.studies.decode.data import RequestData, draw_request
from tilewright.studies.demo.steps import judge_step

PAGE, HEADS, GROUP, DIM = 4, 2, 3, 8
SCALE = DIM**-0.5


def draw(num_requests: int, context: int, seed: int = 0) -> list[RequestData]:
    geometry = Geometry.gqa(page_size=PAGE, head_dim=DIM, query_heads=GROUP)
    _, graph = trace_for_model("streaming_llm", geometry)
    return [
        draw_request(
            graph,
            np.random.default_rng((seed, index)),
            context=context,
            steps=1,
            kv_heads=HEADS,
            window=1,
        )
        for index in range(num_requests)
    ]


def weights(data: RequestData, head: int, query: int) -> list[float]:
    """The dense softmax of one query head, token by token."""
    q = data.queries[-1, head, query].tolist()
    logits = [SCALE * sum(a * b for a, b in zip(q, key, strict=True)) for key in data.keys[:, head]]
    total = sum(math.exp(logit) for logit in logits)
    return [math.exp(logit) / total for logit in logits]


def dense(data: RequestData, head: int, query: int) -> npt.NDArray[np.float64]:
    assert data.values is not None
    shares = weights(data, head, query)
    terms = [share * value for share, value in zip(shares, data.values[:, head], strict=True)]
    total: npt.NDArray[np.float64] = np.array(terms, np.float64).sum(axis=0)
    return total


def outputs_of(requests: list[RequestData]) -> npt.NDArray[np.float32]:
    rows = [
        [dense(data, head, query) for query in range(GROUP)]
        for data in requests
        for head in range(HEADS)
    ]
    return np.array(rows, np.float32)


def num_pages(data: RequestData) -> int:
    return -(-len(data.keys) // PAGE)


@given(context=st.integers(1, 21), num_requests=st.integers(1, 2))
def test_all_pages_and_dense_outputs_keep_everything(context: int, num_requests: int) -> None:
    requests = draw(num_requests, context)
    pages = [np.arange(num_pages(data)) for data in requests for _ in range(HEADS)]
    found = judge_step(requests, outputs_of(requests), pages, page_size=PAGE, scale=SCALE)
    assert found.mass == pytest.approx(1.0)
    assert found.output_error == pytest.approx(0.0, abs=1e-5)
    assert found.needles.found == found.needles.planted == num_requests * HEADS


@given(context=st.integers(4, 21), data=st.data())
def test_mass_is_that_of_the_tokens_on_the_pages_that_were_read(
    context: int, data: st.DataObject
) -> None:
    (request,) = draw(1, context)
    choices = st.sets(st.integers(0, num_pages(request) - 1))
    read = [sorted(data.draw(choices)) for _ in range(HEADS)]
    found = judge_step(
        [request],
        outputs_of([request]),
        [np.array(pages, np.int64) for pages in read],
        page_size=PAGE,
        scale=SCALE,
    )
    kept = [
        sum(
            share
            for token, share in enumerate(weights(request, head, query))
            if token // PAGE in read[head]
        )
        for head in range(HEADS)
        for query in range(GROUP)
    ]
    assert found.mass == pytest.approx(sum(kept) / len(kept))
    on_read = [needle for needle in request.needles if needle.position // PAGE in read[needle.head]]
    assert found.needles.found == len(on_read)


def test_the_error_is_relative_to_the_norm_of_the_dense_output() -> None:
    requests = draw(1, 12)
    pages = [np.arange(num_pages(requests[0]))] * HEADS
    found = judge_step(requests, 1.5 * outputs_of(requests), pages, page_size=PAGE, scale=SCALE)
    assert found.output_error == pytest.approx(0.5, abs=1e-5)
