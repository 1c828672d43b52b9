"""Composites: one command that walks over tiles, told to the scheduler as a whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tilewright.engine.core import NO_WALK
from tilewright.executor.composite.pipeline import Pipeline, TileWork
from tilewright.executor.composite.work import GemmWork, VectorWork
from tilewright.executor.program import Program
from tilewright.language.composite import CompositePlan
from tilewright.language.source import line_text, source_line
from tilewright.language.value import Block

__all__ = ("Pending", "run_composite")


@dataclass(frozen=True, slots=True)
class Pending:
    """Something that was begun and goes on; ``block`` is what it gives, if that is a value."""

    program: Program
    task: int
    block: Block | None
    what: str

    def wait(self) -> Block | None:
        """Suspend the program until it has ended."""
        program = self.program
        line = line_text(source_line())
        program.stream.wait(self.task, f"{program} waits for {self.what} at {line}")
        return self.block


def run_composite(program: Program, composite: CompositePlan) -> Pending:
    """Issue a composite; its end can be waited for."""
    program.hand_over_if_long()
    work: TileWork = (GemmWork if composite.op == "gemm" else VectorWork)(program, composite)
    pipeline = Pipeline(program, composite)
    with _parts_of_one(program):
        pipeline.run(work)
    task = program.issuer.close_composite()
    return Pending(program, task, pipeline.whole, str(composite))


@contextmanager
def _parts_of_one(program: Program) -> Iterator[None]:
    program.issuer.open_composite()
    program.compose(True)
    program.last_walk = NO_WALK
    try:
        yield
    finally:
        program.compose(False)
