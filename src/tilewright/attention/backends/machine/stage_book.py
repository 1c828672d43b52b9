"""Which stage of a step said a command, and the bytes that each stage moves."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from tilewright.analysis.trace.commands import InstrumentedIssuer
from tilewright.attention.codegen import Stage
from tilewright.engine.core import IssuedAccess
from tilewright.engine.issuer import Issuer
from tilewright.executor.program import Program

_ACCESSES = {"load": 1, "store": 2}  # by method: which argument they are
_NO_COMMAND = frozenset({"finish", "release"})


@dataclass(slots=True, eq=False)
class StageBook:
    """Notes of all programs whose kernel is in ``stage_of``: functions of a text, by name.

    ``burst_bytes`` is what memories move at least: an access is counted in whole bursts, as a
    controller does.
    """

    stage_of: Mapping[str, Stage]
    path: str
    burst_bytes: int
    _stages: dict[int, list[Stage | None]] = field(default_factory=dict)  # by owner, then command
    _num_bytes: dict[str, dict[Stage | None, int]] = field(default_factory=dict)  # by kernel

    def is_watching(self, owner: int) -> bool:
        del owner  # the bytes of a stage are those of all programs
        return True

    def watch(self, program: Program, issuer: Issuer) -> Issuer:
        """The issuer that a program uses instead of its own."""
        owner = program.run.hub.running.number
        stages = self._stages.setdefault(owner, [])

        def hear(method: str, arguments: tuple[Any, ...], _result: Any) -> None:
            if method in _NO_COMMAND:
                return
            stage = self.current_stage()
            stages.extend([stage] * (issuer.num_commands - len(stages)))
            if method in _ACCESSES:
                of_kernel = self._num_bytes.setdefault(program.name, {})
                moved = self._touched_bytes(arguments[_ACCESSES[method]])
                of_kernel[stage] = of_kernel.get(stage, 0) + moved

        watched: Any = InstrumentedIssuer(issuer, hear)
        return watched  # type: ignore[no-any-return]

    def stage_of_command(self, owner: int, command: int) -> Stage | None:
        stages = self._stages.get(owner, [])
        return stages[command] if command < len(stages) else None

    def bytes_of(self, kernel: str) -> Mapping[Stage | None, int]:
        """Of all programs of a kernel; None: what no function of a stage has said."""
        return self._num_bytes.get(kernel, {})

    def _touched_bytes(self, accesses: list[IssuedAccess]) -> int:
        """Of the bursts that accesses touch."""
        burst, total = self.burst_bytes, 0
        for _, num_segments, num_bytes, stride_bytes, address, _ in accesses:
            first = address % burst
            if stride_bytes % burst == 0 or num_segments == 1:
                total += num_segments * (-(-(first + num_bytes) // burst))
            else:
                starts = (first + index * stride_bytes for index in range(num_segments))
                total += sum(-(-(at % burst + num_bytes) // burst) for at in starts)
        return total * burst

    def current_stage(self) -> Stage | None:
        """Of the innermost function of the text that has one."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if code.co_filename == self.path and code.co_name in self.stage_of:
                return self.stage_of[code.co_name]
            frame = frame.f_back
        return None
