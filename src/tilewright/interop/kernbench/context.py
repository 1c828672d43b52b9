"""The runtime context of KernBench programs: ``kernbench.runtime_api.context``."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np

from tilewright.errors import ProgramError, TilewrightError
from tilewright.host.worker import Accelerator, Ahbm
from tilewright.host.worker import DeviceSelector as HostDevice
from tilewright.interop.kernbench.distributed import DistributedContext
from tilewright.interop.kernbench.engine import GraphEngine, check_spec
from tilewright.interop.kernbench.launch import plan_launch
from tilewright.interop.kernbench.message import MemoryWriteMsg
from tilewright.interop.kernbench.multiprocessing import Multiprocessing
from tilewright.interop.kernbench.placement import DPPolicy, python_int
from tilewright.interop.kernbench.tensor import (
    DeployedTensor,
    PlacedTensor,
    TargetPe,
    Tensor,
    TensorShard,
)
from tilewright.interop.kernbench.value import (
    Completion,
    DeviceSelector,
    RequestHandle,
    RuntimeProgramError,
    ValueProgramError,
    dtype_of_text,
    sips_of,
)
from tilewright.memory.mapping import Sight
from tilewright.runtime.placement.placement import Targets
from tilewright.runtime.tensor import tensor as ours

DeferredHandle = tuple[RequestHandle, int, dict[str, Any]]
"""A launch on one SIP that nobody has waited for: its handle, the SIP, fields of its trace."""


class RuntimeContext:
    """The ``torch`` of a KernBench program: tensors, launches and messages on an engine.

    ``target_device`` is "all", "sip:N" or a DeviceSelector. ``spec`` is that of the engine's graph;
    without it tensors are refused.
    """

    def __init__(
        self,
        engine: GraphEngine,
        target_device: DeviceSelector | str = "all",
        correlation_id: str = "run",
        spec: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(engine, GraphEngine):
            fix = "write RuntimeContext(GraphEngine(graph), ...), or pass torch.engine"
            raise ProgramError("RuntimeContext", f"the engine {engine!r}", "a GraphEngine", fix)
        self.engine = engine
        self.target_device = target_device
        self.correlation_id = correlation_id
        self.spec = spec
        host = engine.host
        self.sips = sips_of(target_device, host.machine.grid.num_sips)
        if spec is not None:
            check_spec(spec, host.machine)
        self.ahbm = Ahbm(HostDevice(self.sips, is_all=len(self.sips) > 1))
        self.accelerator = Accelerator(self.ahbm)
        self.multiprocessing = Multiprocessing(host)
        self.distributed = DistributedContext(self)
        self.install_ipcq = self.distributed.install_ipcq
        self.traces: list[dict[str, Any]] = []  # of waits that were given fields to add
        self._handles: list[RequestHandle] = []
        self._completed: set[RequestHandle] = set()
        self._deferred: dict[RequestHandle, tuple[Tensor, ...]] = {}  # alive until waited for
        self._tensors: list[weakref.ref[Tensor]] = []
        self._num_tensors = 0

    # -- requests --------------------------------------------------------------------------------

    def submit(self, request: Any) -> RequestHandle:
        """Put a message on its way, and return its handle."""
        handle = self.engine.submit(request)
        self._handles.append(handle)
        return handle

    def wait(self, handle: RequestHandle, *, _meta: Mapping[str, Any] | None = None) -> Completion:
        """Wait until a message is complete, and return how it went.

        With ``_meta`` the trace and these fields are added to ``traces``, once a handle.
        """
        if handle not in self._completed:
            self.engine.wait(handle)
            self._completed.add(handle)
            self._deferred.pop(handle, None)
            if _meta is not None:
                self.traces.append({**self.engine.get_completion(handle)[1], **_meta})
        return self.engine.get_completion(handle)[0]

    def wait_all(self) -> None:
        """Wait for every handle that nobody has waited for, in the order of submission."""
        for handle in self._handles:
            if handle not in self._completed:
                self.wait(handle)

    def is_completed(self, handle: RequestHandle) -> bool:
        """Tell whether somebody has waited for a message; done in simulated time is not enough."""
        return handle in self._completed

    def handles(self) -> list[RequestHandle]:
        """Return the handles of all messages so far."""
        return list(self._handles)

    # -- tensors ---------------------------------------------------------------------------------

    def zeros(
        self,
        shape: Sequence[int],
        dtype: str = "f16",
        *,
        dp: DPPolicy | None = None,
        name: str | None = None,
    ) -> Tensor:
        """Return a tensor of zeros: mapped, then written, all its shards at the same time."""
        tensor = self.empty(shape, dtype, dp=dp, name=name)
        messages = [
            MemoryWriteMsg(
                self.correlation_id, f"deploy_{tensor.name}_pe{shard.pe}",
                shard.sip, shard.cube, shard.pe, shard.pa, shard.nbytes,
                pattern="zero", target_cubes=(shard.cube,), target_pe=shard.pe,
            )
            for shard in tensor.shards
        ]  # fmt: skip
        handles = [self.submit(message) for message in messages]
        for handle, shard in zip(handles, tensor.shards, strict=True):
            place = {"sip": shard.sip, "cube": shard.cube, "pe": shard.pe, "nbytes": shard.nbytes}
            self.wait(handle, _meta={"phase": "memory_write", "name": tensor.name, **place})
        return tensor

    def empty(
        self,
        shape: Sequence[int],
        dtype: str = "f16",
        *,
        dp: DPPolicy | None = None,
        name: str | None = None,
    ) -> Tensor:
        """Return a tensor whose memory is mapped and not written."""
        if not isinstance(dp, DPPolicy):
            fix = "write dp=DPPolicy(...), of kernbench.policy.placement.dp"
            raise ValueProgramError("tensor", f"dp={dp!r}", "a DPPolicy", fix)
        if self.spec is None:
            found, fix = "a context without spec", "pass spec=graph.spec"
            raise RuntimeProgramError("tensor", found, "the spec of the engine's graph", fix)
        self._num_tensors += 1
        given = shape if isinstance(shape, Sequence | np.ndarray) else (shape,)
        sizes = tuple(map(python_int, given))
        tensor = Tensor(sizes, dtype, name or f"t{self._num_tensors}")
        memory = self.engine.host.deployments.empty(
            sizes, dtype_of_text(dtype), dp=dp.ours, name=tensor.name,
            targets=self._targets(dp), sight=Sight.SIP,
        )  # fmt: skip
        tensor.placed = self._placed(memory, dp)
        self._tensors.append(weakref.ref(tensor))
        return tensor

    def from_numpy(self, arr: Any) -> Tensor:
        """Return a tensor of the host over an array, which is copied only if it has gaps."""
        return Tensor.of_array(np.asarray(arr))

    def cleanup(self) -> None:
        """Free every tensor of the context that is still alive."""
        self.engine.host.distributed.wait_all()
        for reference in self._tensors:
            tensor = reference()
            if tensor is not None and tensor.placed is not None:
                memory, tensor.placed = tensor.placed.memory, None
                memory.free()
        self._tensors.clear()

    # -- launches --------------------------------------------------------------------------------

    def launch(
        self,
        kernel_name: str,
        kernel_fn: Callable[..., Any],
        *args: Any,
        _defer_wait: bool = False,
        _auto_dim_remap: bool = True,
        **kwargs: Any,
    ) -> RequestHandle | list[DeferredHandle]:
        """Run a kernel on the PEs that hold shards of its tensors; return the last SIP's handle.

        Integers that equal a size which SIPs or cubes split are replaced by the local size, unless
        ``_auto_dim_remap`` is false; the context's notes tell of each. ``_defer_wait`` returns the
        handles of all SIPs, with SIP and trace fields, and waits for none.
        """
        plan = plan_launch(
            kernel_name, kernel_fn, args, kwargs, correlation_id=self.correlation_id,
            num_sips=len(self.sips), num_cubes=self.engine.host.machine.grid.num_cubes_per_sip,
            replaces_sizes=_auto_dim_remap,
        )  # fmt: skip
        self.engine.kernels[kernel_name] = kernel_fn
        self.engine.host.notes.extend(plan.notes)
        keeps = tuple(each for each in args if isinstance(each, Tensor))
        deferred: list[DeferredHandle] = []
        for sip, message in plan.messages.items():
            handle = self.submit(message)
            self._deferred[handle] = keeps
            fields = {"phase": "kernel", "name": kernel_name, "sip": sip}
            deferred.append((handle, sip, {**fields, "target_pe": plan.target_pe}))
        if _defer_wait:
            return deferred
        for handle, _, fields in deferred:
            self.wait(handle, _meta=fields)
        return deferred[-1][0]

    # -- its life --------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        if kind is None:
            self.cleanup()
            return
        with suppress(TilewrightError):  # the first error is the one to tell
            self.cleanup()

    # -- parts of the above ----------------------------------------------------------------------

    def _targets(self, dp: DPPolicy) -> Targets:
        """Return the SIPs for a policy: the worker's own, if it has set one and names none."""
        current = self.ahbm.current_device()
        is_scoped = current is not None and dp.sip == "replicate" and dp.num_sips is None
        sips = (current,) if is_scoped and current is not None else self.sips
        return Targets.of_grid(self.engine.host.machine.grid, sips)

    def _placed(self, memory: ours.Tensor, dp: DPPolicy) -> PlacedTensor:
        driver = self.engine.host.driver
        pages = driver.tensors[memory.address]
        shards = []
        for shard in memory.shards:
            (piece,) = pages.pieces(shard.home)
            physical = driver.memory.physical(piece.place, piece.offset)
            home = shard.home
            shards.append(
                TensorShard(home.sip, home.cube, home.pe, physical, shard.num_bytes, shard.offset)
            )
        handle = DeployedTensor(memory.address, memory.nbytes, tuple(shards))
        pes = tuple(sorted({shard.pe for shard in shards}))
        target_pe: TargetPe = pes if len(pes) > 1 else sum(pes)  # of no shard: the first
        if len(pes) == self.engine.host.machine.grid.num_pes_per_cube:
            target_pe = "all"
        return PlacedTensor(memory, dp, handle, target_pe)
