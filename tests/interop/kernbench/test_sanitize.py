"""Findings of the sanitizer in programs of KernBench, and runs without any."""

from typing import Any

import numpy as np

from tests.interop.kernbench.engines import (
    HOME,
    carry_out,
    engine,
    hbm,
    map_,
    run_kernel,
    write,
)
from tilewright.interop.kernbench.context import RuntimeContext
from tilewright.interop.kernbench.engine import spec_of_machine
from tilewright.interop.kernbench.message import ScalarArg
from tilewright.interop.kernbench.placement import DPPolicy

VA = 0x8_0000_0000
TWO = DPPolicy(pe="row_wise", num_cubes=1, num_pes=2)


def test_a_pe_may_read_another_pes_shard() -> None:
    on = engine(sanitize=True)
    torch = RuntimeContext(on, "all", "test", spec_of_machine(on.host.machine))
    data = np.arange(128, dtype=np.float16).reshape(2, 64)
    x, out = (torch.zeros((2, 64), dp=TWO, name=name) for name in ("x", "out"))
    x.copy_(torch.from_numpy(data))

    def swap(x_ptr: int, out_ptr: int, n: int, tl: Any) -> None:
        me = tl.program_id(0)
        tl.store(out_ptr + me * n * 2, tl.load(x_ptr + (1 - me) * n * 2, (n,), "f16"))

    torch.launch("swap", swap, x, out, 64)
    assert out.numpy().tolist() == data[::-1].tolist()
    assert on.host.findings.text == ""


def test_bytes_that_a_message_has_mapped_are_no_wild_access() -> None:
    on = engine(sanitize=True)
    carry_out(on, write(hbm(), 128, pattern=1))
    carry_out(on, map_(VA, hbm(), 256, target_cubes=0, target_pe=HOME.pe))

    def copy(ptr: int, source: int, tl: Any) -> None:
        tl.store(ptr + 64, tl.load(ptr + source, (32,), "f16"))

    targets = {"target_cubes": 0, "target_pe": HOME.pe}
    run_kernel(on, copy, ScalarArg("i32", VA), ScalarArg("i32", 0), **targets)
    assert on.host.findings.text == ""
    run_kernel(on, copy, ScalarArg("i32", VA), ScalarArg("i32", 192), **targets)
    assert "uninitialised" in on.host.findings.text  # nobody has written these
