"""Data in memory, and a message that says that they are there."""

from typing import Any

from tests.sanitizer.field import BLOCK, RING, Mistake, tensor
from tilewright import language as tl
from tilewright.host import RuntimeContext

__all__ = ("MISTAKES",)

N = 4 * BLOCK


def _launch(torch: RuntimeContext, kernel: Any) -> None:
    data, out = tensor(torch, "data", N, 1.0), tensor(torch, "out", N)
    torch.launch(kernel, data, out, grid=(4,), neighbours=RING)


def signal_without_waiting(torch: RuntimeContext, wrong: bool) -> None:
    """The message leaves while the store is under way; right, it carries what was read back."""

    def kernel(data: Any, out: Any) -> None:
        places = tl.arange(0, BLOCK)
        if tl.program_id(0) == 0:
            tl.store(data + places, tl.zeros((BLOCK,), tl.float32))
            token = tl.zeros((BLOCK,), tl.float32) if wrong else tl.load(data + places)
            tl.send("E", token)
        elif tl.program_id(0) == 1:
            tl.recv("W", (BLOCK,), tl.float32)
            tl.store(out + places, tl.load(data + places))

    _launch(torch, kernel)


def signal_too_early(torch: RuntimeContext, wrong: bool) -> None:
    """The message goes out before the store, or after the end of what stores."""

    def kernel(data: Any, out: Any) -> None:
        places = tl.arange(0, BLOCK)
        if tl.program_id(0) == 0:
            if wrong:
                tl.send("E", tl.zeros((8,), tl.float32))
            one = tl.ref(data + BLOCK, (32, 32))
            tl.wait(tl.composite("exp", one, out_ptr=data, tile_shape=(32, 32, 32)))
            if not wrong:
                tl.send("E", tl.zeros((8,), tl.float32))
        elif tl.program_id(0) == 1:
            tl.recv("W", (8,), tl.float32)
            tl.store(out + places, tl.load(data + places))

    _launch(torch, kernel)


def early_answer(torch: RuntimeContext, wrong: bool) -> None:
    """A reader says that it is done while it still reads; the writer goes on."""

    def kernel(data: Any, out: Any) -> None:
        places = tl.arange(0, BLOCK)
        if tl.program_id(0) == 1:
            block = tl.load(data + places)
            tl.send("W", tl.zeros((BLOCK,), tl.float32) if wrong else block)
            tl.store(out + places, block)
        elif tl.program_id(0) == 0:
            tl.recv("E", (BLOCK,), tl.float32)
            tl.store(data + places, tl.zeros((BLOCK,), tl.float32))

    _launch(torch, kernel)


def unfinished_receive(torch: RuntimeContext, wrong: bool) -> None:
    """The receiver reads before it has waited for the message."""

    def kernel(data: Any, out: Any) -> None:
        places = tl.arange(0, BLOCK)
        if tl.program_id(0) == 0:
            tl.store(data + places, tl.zeros((BLOCK,), tl.float32))
            tl.send("E", tl.load(data + places))
        elif tl.program_id(0) == 1:
            pending = tl.recv_async("W", (BLOCK,), tl.float32)
            if wrong:
                block = tl.load(data + places)
                tl.wait(pending)
            else:
                tl.wait(pending)
                block = tl.load(data + places)
            tl.store(out + places, block)

    _launch(torch, kernel)


def short_cut(torch: RuntimeContext, wrong: bool) -> None:
    """A message through a third program says nothing if that one does not wait for the first."""

    def kernel(data: Any, out: Any) -> None:
        places = tl.arange(0, BLOCK)
        here = tl.program_id(0)
        token = tl.zeros((8,), tl.float32)
        if here == 0:
            tl.store(data + places, tl.zeros((BLOCK,), tl.float32))
            tl.send("E", tl.sum(tl.load(data + places), 0))
        elif here == 1:
            if wrong:
                tl.send("E", token)
            tl.recv("W", (), tl.float32)
            if not wrong:
                tl.send("E", token)
        elif here == 2:
            tl.recv("W", (8,), tl.float32)
            tl.store(out + places, tl.load(data + places))

    _launch(torch, kernel)


def one_buffer(torch: RuntimeContext, wrong: bool) -> None:
    """A producer fills a buffer in memory again and again; with two halves and answers it may."""

    def kernel(data: Any, out: Any) -> None:
        places = tl.arange(0, BLOCK)
        here = tl.program_id(0)
        for turn in range(4):
            half = 0 if wrong else turn % 2 * BLOCK
            if here == 0:
                if not wrong and turn > 1:
                    tl.recv("E", (BLOCK,), tl.float32)
                tl.store(data + half + places, tl.full((BLOCK,), turn, tl.float32))
                tl.send("E", tl.load(data + half + places))
            elif here == 1:
                tl.recv("W", (BLOCK,), tl.float32)
                block = tl.load(data + half + places)
                if not wrong and turn < 2:
                    tl.send("W", block)
                tl.store(out + turn * BLOCK + places, block)

    _launch(torch, kernel)


def long_ago(torch: RuntimeContext, wrong: bool) -> None:
    """More commands lie between a store and its message than can be under way at a time."""

    def kernel(data: Any, out: Any) -> None:
        places = tl.arange(0, 64)
        if tl.program_id(0) == 0:
            tl.store(data + places, tl.zeros((64,), tl.float32))
            total = tl.zeros((64,), tl.float32)
            for _ in range(300):
                total += 1.0
            token = total if wrong else total + tl.load(data + places)
            tl.send("E", token)
        elif tl.program_id(0) == 1:
            tl.recv("W", (64,), tl.float32)
            tl.store(out + places, tl.load(data + places))

    _launch(torch, kernel)


MISTAKES: tuple[Mistake, ...] = (
    signal_without_waiting,
    signal_too_early,
    early_answer,
    unfinished_receive,
    short_cut,
    one_buffer,
    long_ago,
)
