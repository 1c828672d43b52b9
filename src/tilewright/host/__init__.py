"""RuntimeContext: the facade and its torch-like namespaces."""

from tilewright.device.dma import Access
from tilewright.device.ipcq import Backpressure, RingKind, RingSpec
from tilewright.engine.spec import Limits
from tilewright.executor.neighbour import Neighbours
from tilewright.host.context import RuntimeContext
from tilewright.machine.coords import PeCoord
from tilewright.memory.mapping import MapMsg, UnmapMsg
from tilewright.runtime.launch.bind import LaunchOptions, LocalShard, LocalSize
from tilewright.runtime.launch.launch import Pending
from tilewright.runtime.message import KernelLaunchMsg, MemoryReadMsg, MemoryWriteMsg, PeDmaMsg
from tilewright.runtime.placement.policy import DPPolicy, Interleave, Split
from tilewright.runtime.request import Completion, LaunchReport, Request
from tilewright.runtime.tensor.tensor import Tensor

__all__ = (
    "Access",
    "Backpressure",
    "Completion",
    "DPPolicy",
    "Interleave",
    "KernelLaunchMsg",
    "LaunchOptions",
    "LaunchReport",
    "Limits",
    "LocalShard",
    "LocalSize",
    "MapMsg",
    "MemoryReadMsg",
    "MemoryWriteMsg",
    "Neighbours",
    "PeCoord",
    "PeDmaMsg",
    "Pending",
    "Request",
    "RingKind",
    "RingSpec",
    "RuntimeContext",
    "Split",
    "Tensor",
    "UnmapMsg",
)
