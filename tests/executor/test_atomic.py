"""What atomics order: a flag says that data are there."""

from typing import Any

import numpy as np
import pytest

from tests.kinds import needs_both_engines
from tilewright import language as tl
from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.errors import KernelError
from tilewright.machine import build_machine, parse_machine
from tilewright.runtime.workspace import Workspace

MACHINE = build_machine(parse_machine("ahbm-small"))
BLOCK = 4096


def handed_over(sem: str | None, engine: EngineKind | Auto = AUTO) -> tuple[float, int]:
    """The least of what a reader finds that waited for a flag, and the time of it all.

    The data lie with the reader, far from the writer, and the flag beside the writer.
    """

    def kernel(data: Any, flag: Any, out: Any) -> None:
        places = tl.arange(0, BLOCK)
        if tl.program_id(0) == 0:
            tl.store(data + places, tl.full((BLOCK,), 1.0, tl.float32))
            tl.atomic_xchg(flag, 1, sem=sem)
        else:
            while tl.atomic_cas(flag, 1, 2, sem=sem) == 0:
                pass
            tl.store(out + places, tl.load(data + places))

    workspace = Workspace(MACHINE, engine)
    pes = list(MACHINE.grid.pes())
    writer, reader = pes[0], pes[-1]
    data, out = (workspace.place(np.zeros(BLOCK, np.float32), [reader]) for _ in range(2))
    flag = workspace.place(np.zeros(1, np.int32), [writer])
    result = workspace.launch(kernel, data, flag, out, grid=(2,), pes=[writer, reader])
    return float(workspace.read(out).min()), result.latency_ps


@pytest.mark.parametrize("sem", [None, "acq_rel"])
def test_what_is_stored_before_a_flag_is_read_behind_it(sem: str | None) -> None:
    assert handed_over(sem)[0] == 1.0


def test_a_relaxed_flag_orders_nothing() -> None:
    """So it is faster, and the reader finds what was there before."""
    value, time_ps = handed_over("relaxed")
    assert value == 0.0
    assert time_ps < handed_over("acq_rel")[1]


@needs_both_engines
@pytest.mark.parametrize("sem", ["acq_rel", "release", "acquire", "relaxed"])
def test_both_engines_order_the_same(sem: str) -> None:
    assert handed_over(sem, EngineKind.REFERENCE) == handed_over(sem, EngineKind.NATIVE)


def test_a_word_that_is_no_order_is_refused() -> None:
    with pytest.raises(KernelError, match=r"sem='seq_cst'.*'acq_rel', 'release', 'acquire'"):
        handed_over("seq_cst")
