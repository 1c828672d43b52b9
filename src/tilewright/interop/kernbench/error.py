"""Errors that KernBench programs know by the classes of Python."""

from tilewright.errors import ProgramError


class ValueProgramError(ProgramError, ValueError):
    """A wrong value where KernBench raises ValueError."""


class RuntimeProgramError(ProgramError, RuntimeError):
    """A call that cannot be carried out, where KernBench raises RuntimeError."""
