"""Keys and values in int8 and int4: codes with scales for complete pages, staged tokens before."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tilewright.attention.backends.reference import Session, SessionSpec
from tilewright.attention.flow import registry, trace_flow
from tilewright.attention.graph import DType, Geometry, dtypes_of
from tilewright.attention.planner import PlanSpec, parse_policy
from tilewright.errors import SpecError

PAGE, WIDTH, HEADS = 4, 8, 2
CODES = {DType.INT8: 127, DType.INT4: 7}


def bfloat16(values: np.ndarray) -> np.ndarray:
    """Round to nearest even by bits, without the library that the executor uses."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


def read_back(values: np.ndarray, dtype: DType, axis: int) -> np.ndarray:
    """What codes of complete pages hold, in float64."""
    staged = bfloat16(values).astype(np.float64)
    scale = bfloat16(np.abs(staged).max(axis=axis, keepdims=True) / CODES[dtype])
    codes = np.rint(staged / np.where(scale == 0, 1, scale))
    return np.asarray(codes * scale)


def session_of(dtype: DType, *, namespace: str = "numpy", budget: str = "99") -> Session:
    sizes = Geometry.gqa(page_size=PAGE, head_dim=WIDTH, query_heads=HEADS, **dtypes_of(dtype))
    graph = trace_flow(registry.get("block_sparse_attention")(), sizes)
    plan = PlanSpec(budget=parse_policy(budget))
    return Session(graph, SessionSpec(num_kv_heads=1, num_pages=40, plan=plan), namespace=namespace)


def decode(session: Session, keys: np.ndarray, values: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Output of the last token behind a prompt of all others."""
    count = len(keys)
    session.admit("a", range(count - 1))
    step = session.begin({"a": range(count - 1)}, prompt=True)
    step.write(0, "a", keys[:-1], values[:-1])
    step.finish()
    step = session.begin({"a": [count]})
    step.write(0, "a", keys[-1:], values[-1:])
    output = np.asarray(step.attend(0, {"a": query[None, None]})["a"].output)
    step.finish()
    return np.asarray(output[0, 0])


def draw(count: int, seed: int, size: float = 3.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    keys, values = generator.normal(scale=size, size=(2, count, 1, WIDTH)).astype(np.float32)
    query = bfloat16(generator.normal(size=(HEADS, WIDTH)))
    return keys, values, query


@pytest.mark.parametrize("namespace", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", list(CODES))
@given(count=st.integers(2, 19), seed=st.integers(0, 9))
def test_attention_reads_codes_of_complete_pages_and_staged_tokens_of_the_last(
    namespace: str, dtype: DType, count: int, seed: int
) -> None:
    keys, values, query = draw(count, seed)
    complete = count // PAGE * PAGE
    known = {}
    for name, tokens, axis in (("k", keys, -2), ("v", values, -1)):
        pages = tokens[:complete, 0].reshape(-1, PAGE, WIDTH)
        codes = read_back(pages, dtype, axis).reshape(complete, WIDTH)
        known[name] = np.concatenate([codes, bfloat16(tokens[complete:, 0])])
    logits = query.astype(np.float64) @ known["k"].T / np.sqrt(WIDTH)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    expected = weights @ known["v"] / weights.sum(axis=-1, keepdims=True)
    found = decode(session_of(dtype, namespace=namespace), keys, values, query)
    assert np.linalg.norm(found - expected) <= 1e-5 * np.linalg.norm(expected)


@pytest.mark.parametrize("dtype", list(CODES))
@given(seed=st.integers(0, 99), size=st.sampled_from([1e-3, 1.0, 300.0]))
def test_what_is_read_back_is_within_half_a_scale(dtype: DType, seed: int, size: float) -> None:
    keys, values, query = draw(2 * PAGE + 1, seed, size)
    session = session_of(dtype)
    decode(session, keys, values, query)
    for name, tokens, axis in (("k", keys, -2), ("v", values, -1)):
        found = np.asarray(session.field("a", 0, name))[0, :2]
        staged = bfloat16(tokens[: 2 * PAGE, 0]).reshape(2, PAGE, WIDTH)
        largest = np.abs(staged).max(axis=axis, keepdims=True)
        assert np.all(np.abs(found - staged) <= 0.502 * largest / CODES[dtype])


def test_summaries_are_those_of_the_keys_that_attention_reads() -> None:
    keys, values, query = draw(PAGE + 1, seed=3)
    session = session_of(DType.INT4)
    decode(session, keys, values, query)
    mean = read_back(keys[:PAGE, 0][None], DType.INT4, -2).mean(axis=1)
    found = np.asarray(session.field("a", 0, "centroids"))[0, 0, 0]
    np.testing.assert_array_equal(found, bfloat16(mean[0]))


def test_a_rewind_into_a_complete_page_finds_the_staged_tokens() -> None:
    keys, values, query = draw(PAGE + 2, seed=4)
    straight, rewound = session_of(DType.INT4), session_of(DType.INT4)
    expected = decode(straight, keys[: PAGE - 1], values[: PAGE - 1], query)
    decode(rewound, keys[: PAGE - 1], values[: PAGE - 1], query)
    for token in range(PAGE - 1, PAGE + 2):
        step = rewound.begin({"a": [100 + token]})
        step.write(0, "a", keys[token : token + 1], values[token : token + 1])
        step.attend(0, {"a": query[None, None]})
        step.finish()
    rewound.rewind("a", PAGE - 2)
    step = rewound.begin({"a": [PAGE - 1]})
    step.write(0, "a", keys[PAGE - 2 : PAGE - 1], values[PAGE - 2 : PAGE - 1])
    found = np.asarray(step.attend(0, {"a": query[None, None]})["a"].output)[0, 0]
    np.testing.assert_array_equal(found, expected)


def test_bytes_are_those_of_codes_scales_and_staged_tokens() -> None:
    keys, values, query = draw(2 * PAGE + 1, seed=5)
    session = session_of(DType.INT4)
    decode(session, keys, values, query)
    codes = PAGE * WIDTH // 2
    page = (codes + 2 * WIDTH) + (codes + 2 * PAGE)  # keys with their scales, values with theirs
    staged = 2 * 2 * PAGE * WIDTH
    assert session.counters.num_bytes.kv_read == 2 * page + staged
    token = 2 * 2 * WIDTH
    assert session.counters.num_bytes.kv_written == (2 * PAGE + 1) * token + 2 * page


@pytest.mark.parametrize(
    ("dtypes", "words"),
    [
        ({"kv_dtype": DType.INT32}, "geometry.kv_dtype: found int32, expected a float, or int8"),
        ({"kv_dtype": DType.BOOL}, "geometry.kv_dtype: found bool"),
        ({"query_dtype": DType.INT8}, "geometry.query_dtype: found int8, expected a float"),
        ({"field_dtype": DType.INT4}, "a field of whole numbers says FieldSpec"),
    ],
)
def test_types_that_would_cut_numbers_down_are_refused_by_name(
    dtypes: dict[str, DType], words: str
) -> None:
    with pytest.raises(SpecError, match=words):
        Geometry.gqa(page_size=PAGE, head_dim=WIDTH, query_heads=HEADS, **dtypes)
