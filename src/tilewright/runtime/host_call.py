"""Calls of the host that a kernel makes are refused: a program cannot wait for its own launch."""

from tilewright.errors import KernelError
from tilewright.language.executor import program_here
from tilewright.runtime.host_watch import host_line


def check_host_call(what: str) -> None:
    """Raise KernelError if the caller is a program of a kernel; ``what`` is what it asks for."""
    program = program_here()
    if program is None:
        return
    found = f"a call of the host ({what}) inside a kernel"
    fix = "make it before or after the launch, and pass tensors to the kernel"
    raise KernelError(f"{host_line()}, {program}", found, "calls of tl alone", fix)
