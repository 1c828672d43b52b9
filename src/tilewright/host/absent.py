"""What users know and this version does not have."""

from typing import Any, NoReturn

from tilewright.errors import RequestError

__all__ = ("Absent",)


class Absent:
    """Says so at any use."""

    def __init__(self, name: str, part: str) -> None:
        self._name = name
        self._part = part

    def __getattr__(self, attribute: str) -> NoReturn:
        if attribute.startswith("__"):  # what copying, pickling and inspection look for
            raise AttributeError(attribute)
        raise self._error(f"{self._name}.{attribute}")

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise self._error(self._name)

    def _error(self, what: str) -> RequestError:
        expected = f"a version that has {self._part}"
        return RequestError(what, "a call", expected, "this one has not; see the changelog")
