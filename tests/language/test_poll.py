"""Looks at memory that can find nothing new any more, and those that still may."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kinds import every_engine
from tests.language.bed import Array, Bed
from tilewright import language as tl
from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.errors import DeadlockError
from tilewright.language import poll
from tilewright.language.message import Neighbours


@pytest.fixture(autouse=True)
def _few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poll, "MAX_LOOKS", 32)


def run(kernel: Callable[..., Any], num_pes: int = 2, engine: EngineKind | Auto = AUTO) -> Array:
    """Two words in memory, zero at first."""
    bed = Bed(num_pes=num_pes, engine=engine)
    words = bed.place(np.zeros(2, np.int32))
    first, second = bed.pes[0], bed.pes[-1]
    table = {first: {"E": second}, second: {"W": first}}
    neighbours = Neighbours(table) if num_pes == 2 else None
    bed.launch(kernel, words, grid=(num_pes,), neighbours=neighbours)
    return bed.read(words)


@every_engine
def test_looking_for_ever_ends_with_who_looks_at_what_since_when(kind: EngineKind) -> None:
    def kernel(flag: Any) -> None:
        while tl.atomic_load(flag) == 0:
            pass

    with pytest.raises(DeadlockError) as caught:
        run(kernel, 1, kind)
    (line,) = caught.value.waiters
    assert line.startswith("program (0,) of kernel on sip0.cube0.pe0 at ")
    assert "test_poll.py:" in line
    assert line.endswith(" since 0 ps")
    assert "has looked 64 times at 0x" in line


def test_programs_that_look_for_each_other_are_all_named() -> None:
    def kernel(flags: Any) -> None:
        here = tl.program_id(0)
        while tl.atomic_load(flags + here) == 0:
            pass
        tl.atomic_store(flags + 1 - here, 1)

    with pytest.raises(DeadlockError) as caught:
        run(kernel)
    assert len(caught.value.waiters) == 2


def test_a_program_that_waits_for_the_one_that_looks_does_not_keep_it_going() -> None:
    def kernel(flag: Any) -> None:
        if tl.program_id(0) == 0:
            tl.recv("E", (8,), tl.float32)
            tl.atomic_store(flag, 1)
        else:
            while tl.atomic_load(flag) == 0:
                pass
            tl.send("W", tl.zeros((8,), tl.float32))

    with pytest.raises(DeadlockError, match="nothing but looks") as caught:
        run(kernel)
    assert len(caught.value.waiters) == 1


@every_engine
def test_a_program_that_only_reads_for_long_may_still_write(kind: EngineKind) -> None:
    def kernel(words: Any) -> None:
        if tl.program_id(0) == 0:
            while tl.atomic_load(words) == 0:
                pass
        else:
            for _ in range(500):
                if tl.load(words + 1) != 0:
                    break
            tl.store(words, 7)

    assert run(kernel, engine=kind)[0] == 7


def test_looks_between_which_something_is_written_go_on() -> None:
    def kernel(words: Any) -> None:
        for _ in range(200):
            if tl.atomic_load(words) != 0:
                break
            tl.atomic_add(words + 1, 1)

    assert run(kernel, 1)[1] == 200


def test_a_flag_that_goes_to_and_fro_is_looked_at_as_often_as_it_takes() -> None:
    def kernel(flag: Any) -> None:
        here = tl.program_id(0)
        for turn in range(40):
            while tl.atomic_load(flag) != 2 * turn + here:
                pass
            tl.atomic_store(flag, 2 * turn + here + 1)

    assert run(kernel)[0] == 80
