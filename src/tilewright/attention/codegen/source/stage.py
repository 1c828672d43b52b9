"""Stages of a row as functions that one kernel calls in order."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.attention.codegen.plan.traffic import Stage, Traffic
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.file import Emitted, Grid
from tilewright.attention.codegen.source.row import RowForm
from tilewright.attention.codegen.source.tree import (
    Function,
    assigned,
    code,
    used,
    without_unused,
)

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
    purpose: str
    body: Body
    traffic: Traffic | Stage  # the stage alone, if its bytes are not known
    given: dict[str, str] = field(default_factory=dict)
    result: str = ""

    @property
    def stage(self) -> Stage:
        return self.traffic.stage if isinstance(self.traffic, Traffic) else self.traffic

    def function(self) -> Function:
        """Return the function; its parameters are what it reads, in a fixed order."""
        ending = code(f"return {self.result}") if self.result else []
        statements = without_unused(self.body.statements, used(ending)) + ending
        names = used(statements) | assigned(statements)
        known = {**self.given, **_LOCALS, **self.body.arguments}
        parameters = {name: holds for name, holds in known.items() if name in names}
        return Function(self.name, self.purpose, parameters, statements)


def emit_row_kernel(name: str, form: RowForm, stages: Sequence[StageFunction]) -> Emitted:
    """Emit one kernel that calls the stages in order; their functions are ahead of it."""
    body = Body()
    body.add(form.preamble(body))
    functions = [stage.function() for stage in stages]
    for stage, function in zip(stages, functions, strict=True):
        for argument, holds in stage.body.arguments.items():
            if argument in function.arguments:
                body.need(argument, holds)
        call = f"{stage.name}({', '.join(function.arguments)})"
        body.add(f"{stage.result} = {call}" if stage.result else call)
    what = "row" if form.part is None else "row and member"
    purpose = f"All of a row in one program: a program for each {what}."
    traffic = [stage.traffic for stage in stages]
    return Emitted.of(name, purpose, body, Grid.ROW_MEMBERS, *traffic, ahead=functions)
