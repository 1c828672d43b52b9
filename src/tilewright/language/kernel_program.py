"""A program with all that a kernel can ask for: accesses, composites and messages."""

from tilewright.language.atomic import atomic, atomic_load, atomic_store
from tilewright.language.composite_run import run_composite
from tilewright.language.dma import load, store
from tilewright.language.message import peek, receive, send
from tilewright.language.poll import note_poll
from tilewright.language.program import Program

__all__ = ("KernelProgram",)


class KernelProgram(Program):
    """Functions of a program as its methods: a call costs no frame more."""

    load = load
    store = store
    atomic = atomic
    atomic_load = atomic_load
    atomic_store = atomic_store
    note_poll = note_poll
    composite = run_composite
    send = send
    receive = receive
    peek = peek
