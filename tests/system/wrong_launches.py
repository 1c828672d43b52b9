"""Kernels that fail, each in a way of its own, and right ones to launch between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from tilewright import language as tl
from tilewright.errors import DeadlockError, KernelError, MessageError, PageFaultError
from tilewright.host import DPPolicy, PeCoord, RuntimeContext, Tensor
from tilewright.machine import Machine, build_machine, parse_machine

__all__ = (
    "COPIES",
    "FAILURES",
    "PAIR",
    "RIGHT",
    "SIZE",
    "Failure",
    "Right",
    "context",
    "values",
)

SIZE = 512  # elements of a program's part
WEST, EAST = PAIR = [PeCoord(0, 0, 0), PeCoord(0, 0, 1)]
COPIES = DPPolicy(num_sips=1, num_cubes=1, num_pes=1)
NEIGHBOURS = {WEST: {"E": EAST}, EAST: {"W": WEST}}


@cache
def machine() -> Machine:
    return build_machine(parse_machine("ahbm-small"))


def context(**options: Any) -> RuntimeContext:
    return RuntimeContext(machine(), **options)


def values(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-99, 99, 2 * SIZE).astype(np.float32)


# -- right ones ------------------------------------------------------------------------------------


def double(x: Any, out: Any) -> None:
    here = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + here, 2 * tl.load(x + here))


def exchange(x: Any, out: Any) -> None:
    """Store what the neighbour has loaded."""
    here = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    there = "E" if tl.program_id(0) == 0 else "W"
    tl.send(there, tl.load(x + here))
    tl.store(out + here, tl.recv(there, (SIZE,), tl.float32))


def count(x: Any, out: Any) -> None:
    """Branch on loaded values: programs wait for them."""
    here = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    block = tl.load(x + here)
    positive = int(tl.sum((block > 0).to(tl.int32)))
    tl.store(out + here, block + (1.0 if positive > SIZE // 2 else -1.0))


@dataclass(frozen=True)
class Right:
    """A launch on two PEs, and what it stores as NumPy has it."""

    kernel: Callable[..., None]
    meaning: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
    options: dict[str, Any] = field(default_factory=dict)

    def launch(self, torch: RuntimeContext, x: Tensor, out: Tensor, **options: Any) -> Any:
        return torch.launch(self.kernel, x, out, grid=(2,), on=PAIR, **self.options, **options)


def _counted(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    halves = x.reshape(2, SIZE)
    more = (halves > 0).sum(1, keepdims=True) > SIZE // 2
    return (halves + np.where(more, 1, -1)).reshape(-1).astype(np.float32)


RIGHT = {
    "double": Right(double, lambda x: 2 * x),
    "exchange": Right(exchange, lambda x: np.roll(x, SIZE), {"neighbours": NEIGHBOURS}),
    "count": Right(count, _counted),
}


# -- wrong ones ------------------------------------------------------------------------------------


def divides(x: Any, out: Any) -> None:
    """Fail in the first program alone, in the author's own code, after a store."""
    here = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + here, tl.load(x + here))
    for part in range(40):
        if tl.program_id(0) == 0 and part == 3:
            int(tl.sum(tl.load(out + here)))
            _ = part // (part - 3)  # fails here
        tl.store(out + here, tl.load(x + here) + part)


def adds_shapes(x: Any, out: Any) -> None:
    del out
    _ = tl.load(x + tl.arange(0, SIZE)) + tl.arange(0, 3)


def leaves_its_pages(x: Any, out: Any) -> None:
    del out
    tl.load(x + (1 << 28))


def receives_first(x: Any, out: Any) -> None:
    here = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    there = "E" if tl.program_id(0) == 0 else "W"
    tl.store(out + here, tl.load(x + here))
    theirs = tl.recv(there, (SIZE,), tl.float32)  # waits for a message
    tl.send(there, theirs)


def fills_the_ring(x: Any, out: Any) -> None:
    del out
    there = "E" if tl.program_id(0) == 0 else "W"
    for _ in range(9):
        tl.send(there, tl.load(x + tl.arange(0, 1024)))  # waits for room


def sends_more_than_a_ring_has(x: Any, out: Any) -> None:
    del x, out
    if tl.program_id(0) == 0:
        tl.send("E", tl.zeros((8 * 1024,), tl.float32))  # is left in the queue


def holds_too_much(x: Any, out: Any) -> None:
    del out
    kept = [tl.load(x)]
    while True:
        kept.append(tl.zeros((1024, 1024), tl.float32))  # has no room


def is_interrupted(x: Any, out: Any) -> None:
    here = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + here, tl.load(x + here))
    int(tl.sum(tl.load(out + here)))
    raise KeyboardInterrupt


def reduces_wrongly(x: Any, out: Any) -> None:
    """Fail when a value is computed: long after the line, inside an effect."""
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, SIZE)), 0, _fails))


def _fails(*_: Any) -> Any:
    raise LookupError("in a combine function")


def sends_too_often(x: Any, out: Any) -> None:
    here = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    block = tl.load(x + here)
    if tl.program_id(0) == 0:
        tl.send("E", block)
        tl.send("E", block)  # nobody receives it
    else:
        block = tl.recv("W", (SIZE,), tl.float32)
    tl.store(out + here, block)


@dataclass(frozen=True)
class Failure:
    """A launch on two PEs that fails, and how."""

    kernel: Callable[..., None]
    error: type[BaseException]
    words: Sequence[str]  # patterns that its text has, in this order
    line: str = ""  # of the kernel, that the text names
    options: dict[str, Any] = field(default_factory=dict)

    def launch(self, torch: RuntimeContext, x: Tensor, out: Tensor, **options: Any) -> Any:
        return torch.launch(self.kernel, x, out, grid=(2,), on=PAIR, **self.options, **options)


MESSAGES = {"neighbours": NEIGHBOURS}
FAILURES = {
    "divides": Failure(divides, ZeroDivisionError, ["division|modulo"]),
    "shapes": Failure(adds_shapes, KernelError, [r"program \(0,\) of adds_shapes"]),
    "fault": Failure(leaves_its_pages, PageFaultError, ["sip0.cube0.pe0", "leaves_its_pages"]),
    "deadlock": Failure(
        receives_first,
        DeadlockError,
        ["message 0 from 'E'", "cycle"],
        "# waits for a message",
        MESSAGES,
    ),
    "full": Failure(
        fills_the_ring, DeadlockError, ["room to send to 'E'"], "# waits for room", MESSAGES
    ),
    "large": Failure(
        sends_more_than_a_ring_has,
        DeadlockError,
        ["1 message that no program has received", "1 of 1 from sip0.cube0.pe0 to 'E'"],
        "# is left in the queue",
        MESSAGES,
    ),
    "tcm": Failure(holds_too_much, KernelError, ["TCM"], "# has no room"),
    "interrupt": Failure(is_interrupted, KeyboardInterrupt, []),
    "late": Failure(reduces_wrongly, KernelError, ["LookupError: in a combine function"]),
    "message": Failure(
        sends_too_often,
        MessageError,
        ["1 message", "1 of 2 from sip0.cube0.pe0 to 'E'", r"sip0.cube0.pe1.*tl.recv\('W'\)"],
        "# nobody receives it",
        MESSAGES,
    ),
}
