"""Requests as KernBench programs know them: ``kernbench.common.types``."""

from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from tilewright.errors import RequestError

__all__ = ("Completion", "RequestHandle", "SimEngine")


class RequestHandle(str):
    """The name of a submitted message, unique on its engine: a text that is not empty.

    >>> RequestHandle("softmax_sip0#3")
    'softmax_sip0#3'
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if not isinstance(text, str) or not text:
            fix = "use the handle that submit returned"
            raise RequestError("RequestHandle", repr(text), "a text that is not empty", fix)
        return super().__new__(cls, text)


@dataclass(frozen=True, slots=True)
class Completion:
    """The end of a request: a failure has a code and a message, a success has neither.

    >>> Completion(ok=True)
    Completion(ok=True, error_code=None, error_message=None)
    """

    ok: bool
    error_code: str | None = None
    error_message: str | None = None

    def __post_init__(self) -> None:
        if type(self.ok) is not bool:
            raise RequestError("Completion", f"ok={self.ok!r}", "True or False", "say which")
        for name in ("error_code", "error_message"):
            value = getattr(self, name)
            if self.ok and value is not None:
                found = f"ok=True with {name}={value!r}"
                fix = "leave it out, or write ok=False"
                raise RequestError("Completion", found, f"{name}=None", fix)
            if not self.ok and (not isinstance(value, str) or not value):
                found = f"ok=False with {name}={value!r}"
                fix = "say what failed, by a code and a message"
                raise RequestError("Completion", found, "a text that is not empty", fix)


@runtime_checkable
class SimEngine(Protocol):
    """An engine that a RuntimeContext can drive."""

    def submit(self, request: Any) -> RequestHandle:
        """Put a message on its way; no simulated time passes."""

    def wait(self, handle: RequestHandle) -> None:
        """Let simulated time pass until the message is complete."""

    def get_completion(self, handle: RequestHandle) -> tuple[Completion, dict[str, Any]]:
        """Return how a complete message ended, and its trace."""
