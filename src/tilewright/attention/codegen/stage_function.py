"""Stages of a step as functions that one kernel calls in order."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.attention.codegen.body import Body
from tilewright.attention.codegen.loop_text import without_unused
from tilewright.attention.codegen.stage import Stage
from tilewright.attention.codegen.text import kernel_text
from tilewright.attention.codegen.traffic import Traffic

__all__ = ("StageFunction",)

_LOCALS = {
    "row": "requests times KV heads",
    "request": "of the row",
    "head": "KV head of the row",
    "num_tokens": "of the row",
    "num_pages": "of the row",
    "member": "who has a share of the row",
    "first_own": "its first page",
    "num_own": "and how many it has",
}
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class StageFunction:
    """``given`` are blocks of earlier stages and what they hold; ``result`` is what it returns."""

    name: str
    stage: Stage
    purpose: str
    body: Body
    lines: Sequence[str]
    given: dict[str, str] = field(default_factory=dict)
    result: str = ""
    traffic: Traffic | None = None

    @property
    def parameters(self) -> dict[str, str]:
        """What the lines use, in a fixed order."""
        used = {name for line in self._lines() for name in _NAME.findall(line)}
        known = {**self.given, **_LOCALS, **self.body.arguments}
        return {name: holds for name, holds in known.items() if name in used}

    def _lines(self) -> list[str]:
        results = [name.strip() for name in self.result.split(",") if name]
        lines = without_unused(self.lines, results)
        return [*lines, f"return {self.result}"] if self.result else lines

    def text(self) -> str:
        return kernel_text(self.name, self.purpose, self.parameters, self._lines())

    def call(self) -> str:
        call = f"{self.name}({', '.join(self.parameters)})"
        return f"{self.result} = {call}" if self.result else call
