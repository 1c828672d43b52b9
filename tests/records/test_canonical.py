import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import RecordError
from tilewright.records import canonical_json, content_hash

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
texts = st.text(st.characters(codec="utf-8"))
values = st.recursive(
    scalars | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=10
)


@given(values)
def test_canonical_json_reads_back_as_the_same_data(value: object) -> None:
    assert json.loads(canonical_json(value)) == value


@given(st.dictionaries(texts, scalars))
def test_the_order_of_keys_changes_neither_bytes_nor_hash(value: dict[str, object]) -> None:
    backwards = dict(reversed(list(value.items())))
    assert canonical_json(backwards) == canonical_json(value)
    assert content_hash(backwards) == content_hash(value)


def test_the_hash_is_sha256_of_the_canonical_bytes() -> None:
    assert content_hash({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes", "\ud800"])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(RecordError, match="plain JSON data"):
        canonical_json({"value": value})
