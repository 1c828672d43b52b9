"""Handles that ``tl`` gives, and names of its commands (``kernbench.common.pe_commands``)."""

from typing import Any

from tilewright.errors import ProgramError
from tilewright.interop.kernbench.language.handle import CompletionHandle, TensorHandle

__all__ = (
    "CompletionHandle",
    "CompositeCmd",
    "DmaReadCmd",
    "DmaWriteCmd",
    "GemmCmd",
    "MathCmd",
    "PeCommand",
    "PeCpuOverheadCmd",
    "TensorHandle",
    "WaitCmd",
)


class PeCommand:
    """A command of a PE. Only ``tl`` issues them: none is made by hand, and no list holds them."""

    instead = "a call of tl"

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002  # fields of all commands
        name = type(self).__name__
        expected = "commands that tl issues as the kernel runs"
        fix = f"write {self.instead} in a kernel, and launch it"
        raise ProgramError(name, f"a {name} made by hand", expected, fix)


class DmaReadCmd(PeCommand):
    """The command of ``tl.load``."""

    instead = "tl.load(ptr, shape, dtype)"


class DmaWriteCmd(PeCommand):
    """The command of ``tl.store``."""

    instead = "tl.store(ptr, handle)"


class GemmCmd(PeCommand):
    """The command of ``tl.dot``."""

    instead = "tl.dot(a, b)"


class MathCmd(PeCommand):
    """The command of operators and functions of ``tl``."""

    instead = "an operator between handles, or tl.exp and the like,"


class CompositeCmd(PeCommand):
    """The command of ``tl.composite``."""

    instead = "tl.composite(op, a, b, out_ptr)"


class WaitCmd(PeCommand):
    """The command of ``tl.wait``."""

    instead = "tl.wait(handle)"


class PeCpuOverheadCmd(PeCommand):
    """The cost of a call; here the machine's, for each command that is issued."""

    instead = "nothing: the machine file has the cost of a command; leave it out"
