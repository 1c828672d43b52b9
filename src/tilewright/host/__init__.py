"""RuntimeContext: the facade and its torch-like namespaces."""

from tilewright.host.context import RuntimeContext
from tilewright.machine.coords import PeCoord
from tilewright.runtime.launch_arguments import LocalShard, LocalSize
from tilewright.runtime.launch_report import LaunchReport
from tilewright.runtime.pending import Pending
from tilewright.runtime.policy import DPPolicy, Interleave, Split
from tilewright.runtime.request import Completion, Request
from tilewright.runtime.tensor import Tensor

__all__ = (
    "Completion",
    "DPPolicy",
    "Interleave",
    "LaunchReport",
    "LocalShard",
    "LocalSize",
    "PeCoord",
    "Pending",
    "Request",
    "RuntimeContext",
    "Split",
    "Tensor",
)
