"""A program with all that a kernel can ask for: accesses, composites and messages."""

from tilewright.executor.atomic import atomic, atomic_load, atomic_store
from tilewright.executor.composite.run import run_composite
from tilewright.executor.dma import load, store
from tilewright.executor.message import peek, receive, send
from tilewright.executor.poll import note_poll
from tilewright.executor.program import Program

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
