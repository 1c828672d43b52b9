import pytest

from tilewright.errors import RequestError
from tilewright.interop.kernbench.engine import GraphEngine
from tilewright.interop.kernbench.value import Completion, RequestHandle, SimEngine


def test_a_handle_is_a_text_that_is_not_empty() -> None:
    handle = RequestHandle("a#0")
    assert handle == "a#0"
    assert hash(handle) == hash("a#0")
    for wrong in ("", None, 3):
        with pytest.raises(RequestError, match="a text that is not empty"):
            RequestHandle(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ((True, "CODE", None), "error_code='CODE', expected error_code=None"),
        ((True, None, ""), "error_message='', expected error_message=None"),
        ((False, None, "words"), "ok=False with error_code=None"),
        ((False, "CODE", None), "ok=False with error_message=None"),
        ((False, "CODE", ""), "ok=False with error_message=''"),
        ((1, None, None), "ok=1, expected True or False"),
    ],
)
def test_a_completion_has_code_and_message_exactly_if_it_failed(
    fields: tuple[bool, str | None, str | None], words: str
) -> None:
    with pytest.raises(RequestError, match=words):
        Completion(*fields)


def test_right_completions_are_values() -> None:
    assert Completion(True) == Completion(ok=True, error_code=None, error_message=None)
    assert Completion(False, "MAP", "mapped twice").error_code == "MAP"


def test_the_engine_is_what_the_protocol_says() -> None:
    assert issubclass(GraphEngine, SimEngine)
