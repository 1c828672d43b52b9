"""Stages of a step as functions that one kernel calls in order."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.attention.codegen.plan.traffic import Stage, Traffic
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.liveness import assigned, used, without_unused
from tilewright.attention.codegen.source.tree import Expression, Function, Return, Statement, code

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


@dataclass(frozen=True, slots=True)
class StageFunction:
    """``given`` are blocks of earlier stages and what they hold; ``result`` is what it returns."""

    name: str
    stage: Stage
    purpose: str
    body: Body
    statements: Sequence[Statement]
    given: dict[str, str] = field(default_factory=dict)
    result: str = ""
    traffic: Traffic | None = None

    def function(self) -> Function:
        """Return the function; its parameters are what it reads, in a fixed order."""
        ending = [Return(Expression.of(self.result))] if self.result else []
        statements = without_unused(self.statements, used(ending)) + ending
        names = used(statements) | assigned(statements)
        known = {**self.given, **_LOCALS, **self.body.arguments}
        parameters = {name: holds for name, holds in known.items() if name in names}
        return Function(self.name, self.purpose, parameters, statements)

    def call(self) -> list[Statement]:
        call = f"{self.name}({', '.join(self.function().arguments)})"
        return code(f"{self.result} = {call}" if self.result else call)
