"""The programs of one stream of a PE, one after the other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tilewright.executor.access.translate import Translator
from tilewright.executor.kernel_program import program_class
from tilewright.executor.location import explained
from tilewright.executor.program import Program, running_program
from tilewright.executor.run import Run
from tilewright.executor.sanitize.program import WatchedProgram
from tilewright.executor.stream import Stream
from tilewright.executor.terms import Gatekeeper, Terms
from tilewright.language.executor import enter_program
from tilewright.language.kernel import seen_by


@dataclass(frozen=True, slots=True)
class StreamPrograms:
    """What one stream of a PE does in a launch."""

    shared: Run
    stream: Stream
    translator: Translator
    terms: Terms
    arguments: Mapping[str, Any]
    ids: Sequence[tuple[int, ...]]
    gate: Gatekeeper

    def run(self) -> None:
        with np.errstate(all="ignore"):  # each greenlet has NumPy's state of its own
            self.gate.begin(self.stream)
            self.translator.num_streams += 1
            self._run()
            for post in self.shared.posts:
                post.release(self.stream)
            self.gate.end(self.stream)
            self.translator.num_streams -= 1

    def _run(self) -> None:
        program = self._program(self.ids[0])
        with explained(running_program):
            run = self._call(program)
            run()
            for ids in self.ids[1:]:
                if not program.begin_anew(ids):
                    program.end()
                    program = self._program(ids)
                    run = self._call(program)
                run()
            program.end()
            self._count()
            self.stream.hand_over()

    def _program(self, ids: tuple[int, ...]) -> Program:
        name, grid = self.terms.kernel.name, self.terms.grid
        make = program_class(self.shared) if self.shared.sanitizer is None else WatchedProgram
        program = make(self.shared, self.stream, self.translator, name, ids, grid)
        enter_program(program)
        return program

    def _call(self, program: Program) -> Callable[[], Any]:
        """The kernel with what the program sees: by place where it can, since names take longer."""
        function = self.terms.kernel.function
        named = seen_by(program, self.arguments)
        code = function.__code__
        placed = [named.pop(name) for name in code.co_varnames[: code.co_argcount]]
        return partial(function, *placed, **named)

    def _count(self) -> None:
        self.shared.counters.commands += self.stream.issuer.num_commands
        self.shared.count_accesses()
        self.translator.count_pages()
        self.shared.counters.spilled_bytes += self.stream.issuer.spilled_bytes
