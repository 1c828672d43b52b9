"""Messages of KernBench programs: ``kernbench.runtime_api.kernel``.

Plain values: what a field may be is checked when the message is submitted, against the machine.
Every message has ``msg_type``, ``correlation_id`` (of the context) and ``request_id``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.interop.kernbench.request import Completion

__all__ = (
    "KernelLaunchMsg",
    "KernelRef",
    "MemoryReadMsg",
    "MemoryWriteMsg",
    "MmuMapMsg",
    "MmuUnmapMsg",
    "PeDmaMsg",
    "ResponseMsg",
    "ScalarArg",
    "TensorArg",
    "TensorArgShard",
)

Units = int | tuple[int, ...] | str
"""Which SIPs, cubes or PEs: one, several, or "all"."""


def _msg_type(text: str) -> str:
    """Return the field ``msg_type`` of a message class; no caller sets it."""
    constant: str = field(default=text, init=False)
    return constant


@dataclass(frozen=True, slots=True)
class MemoryWriteMsg:
    """The host writes neighbouring bytes of one memory of a PE, or of its cube.

    With ``src_kind="pattern"`` the bytes are ``pattern``: ``"zero"``, a byte (0 to 255), bytes that
    are repeated, or None, which takes the time of the write and changes no byte. With
    ``src_kind="host_buffer"`` they are those of ``host_buffer`` (bytes, a NumPy array) at submit.
    """

    correlation_id: str
    request_id: str
    dst_sip: int
    dst_cube: int
    dst_pe: int
    dst_pa: int  # physical address of the first byte
    nbytes: int
    src_kind: str = "pattern"
    pattern: str | int | bytes | None = None
    target_cubes: Units = "all"  # "all", or the cube of dst: a write has one target
    target_pe: Units = "all"
    host_buffer: Any = None
    msg_type: str = _msg_type("memory_write")


@dataclass(frozen=True, slots=True)
class MemoryReadMsg:
    """The host reads neighbouring bytes of one memory; the trace has them as ``data``."""

    correlation_id: str
    request_id: str
    src_sip: int
    src_cube: int
    src_pe: int
    src_pa: int
    nbytes: int
    target_cubes: Units = "all"
    target_pe: Units = "all"
    msg_type: str = _msg_type("memory_read")


@dataclass(frozen=True, slots=True)
class PeDmaMsg:
    """The DMA of PE ``src`` reads or writes memory of PE ``dst``, for its time: no byte changes."""

    correlation_id: str
    request_id: str
    src_sip: int
    src_cube: int
    src_pe: int
    dst_sip: int
    dst_cube: int
    dst_pe: int
    dst_pa: int
    nbytes: int
    direction: str = "read"  # or "write"
    msg_type: str = _msg_type("pe_dma")


@dataclass(frozen=True, slots=True)
class KernelRef:
    """The kernel of a launch: ``builtin`` is registered by name, ``deployed`` is refused."""

    name: str
    kind: str = "builtin"
    deploy_address: int | None = None


@dataclass(frozen=True, slots=True)
class TensorArgShard:
    """A shard of a tensor on one PE, at ``pa`` and ``offset_bytes`` of the tensor's range."""

    sip: int
    cube: int
    pe: int
    pa: int
    nbytes: int
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class TensorArg:
    """A tensor argument: the kernel gets ``va_base``, an integer that counts bytes."""

    shards: tuple[TensorArgShard, ...]
    va_base: int


@dataclass(frozen=True, slots=True)
class ScalarArg:
    """A number as an argument, of dtype ``i32`` or ``f32``; the kernel gets it as it is."""

    dtype: str
    value: int | float


@dataclass(frozen=True, slots=True)
class KernelLaunchMsg:
    """A program of the kernel on each target PE of each target cube of one SIP."""

    correlation_id: str
    request_id: str
    kernel_ref: KernelRef
    args: tuple[TensorArg | ScalarArg, ...] = ()
    target_cubes: Units = "all"
    target_pe: Units = "all"
    target_start_ns: float | None = None  # no program begins before this simulated time
    target_sip: int | None = None  # ours; None: that of the shards in args, else 0
    msg_type: str = _msg_type("kernel_launch")


@dataclass(frozen=True, slots=True)
class MmuMapMsg:
    """Adds translations to the page tables of PEs; an entry has ``va``, ``pa`` and ``size``."""

    correlation_id: str
    request_id: str
    entries: tuple[Mapping[str, int], ...]
    target_sips: Units = "all"
    target_cubes: Units = "all"
    target_pe: Units = "all"
    msg_type: str = _msg_type("mmu_map")


@dataclass(frozen=True, slots=True)
class MmuUnmapMsg:
    """Takes translations out, each as it was mapped; an entry has ``va`` and ``size``."""

    correlation_id: str
    request_id: str
    entries: tuple[Mapping[str, int], ...]
    target_sips: Units = "all"
    target_cubes: Units = "all"
    target_pe: Units = "all"
    msg_type: str = _msg_type("mmu_unmap")


@dataclass(frozen=True, slots=True)
class ResponseMsg:
    """The completion of a request on the reverse path; no program submits one."""

    correlation_id: str
    request_id: str
    completion: Completion
    msg_type: str = _msg_type("response")
