"""Messages by hand: a write, a read and a launch through submit, and their completions."""

import numpy as np
from kernbench.policy.address.phyaddr import PhysAddr
from kernbench.policy.placement.dp import DPPolicy
from kernbench.runtime_api.kernel import (
    KernelLaunchMsg,
    KernelRef,
    MemoryReadMsg,
    MemoryWriteMsg,
    ScalarArg,
    TensorArg,
    TensorArgShard,
)
from kernbench.triton_emu.registry import register_kernel

ROWS, COLUMNS = 8, 16
RESULTS = {}


def increment_kernel(x_ptr, rows, columns, step, tl):
    at = x_ptr + tl.program_id(0) * rows * columns * 2
    tl.store(at, tl.load(at, (rows, columns), "f16") + step)


def run(torch):
    x = np.arange(ROWS * COLUMNS, dtype=np.float16).reshape(ROWS, COLUMNS)
    t = torch.empty(x.shape, dp=DPPolicy(pe="row_wise", num_cubes=1, num_pes=2), name="t")
    t.copy_(torch.from_numpy(x))
    first, second = t._handle.shards
    clear = MemoryWriteMsg(
        correlation_id=torch.correlation_id, request_id="clear",
        dst_sip=first.sip, dst_cube=first.cube, dst_pe=first.pe,
        dst_pa=first.pa, nbytes=first.nbytes, pattern="zero",
        target_cubes=(first.cube,), target_pe=first.pe,
    )  # fmt: skip
    look = MemoryReadMsg(
        correlation_id=torch.correlation_id, request_id="look",
        src_sip=second.sip, src_cube=second.cube, src_pe=second.pe,
        src_pa=second.pa, nbytes=second.nbytes,
    )  # fmt: skip
    handles = [torch.submit(clear), torch.submit(look)]
    before = torch.is_completed(handles[0])
    completions = [torch.wait(handle) for handle in handles]
    register_kernel("increment", increment_kernel)
    shards = tuple(
        TensorArgShard(
            sip=s.sip, cube=s.cube, pe=s.pe, pa=s.pa, nbytes=s.nbytes, offset_bytes=s.offset_bytes
        )
        for s in t._handle.shards
    )
    launch = torch.submit(
        KernelLaunchMsg(
            correlation_id=torch.correlation_id,
            request_id="increment",
            kernel_ref=KernelRef(name="increment", kind="builtin"),
            args=(
                TensorArg(shards=shards, va_base=t._handle.va_base),
                ScalarArg(dtype="i32", value=ROWS // 2),
                ScalarArg(dtype="i32", value=COLUMNS),
                ScalarArg(dtype="f32", value=1.0),
            ),
            target_cubes=(0,),
            target_pe=(0, 1),
        )
    )
    torch.wait_all()
    owner = PhysAddr.decode(second.pa)
    ok = [completion.ok for completion in completions]
    RESULTS.update(x=x, out=t.numpy(), ok=ok, before=before, after=torch.is_completed(launch))
    RESULTS.update(counted=len(torch.handles()), same=owner.encode() == second.pa)
