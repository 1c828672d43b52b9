"""RuntimeContext: what a host program calls ``torch``."""

from collections.abc import Mapping
from operator import index
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

import numpy as np

from tilewright.collectives.config import AlgorithmEntry, parse_config
from tilewright.collectives.direction import Topology, parse_topology
from tilewright.collectives.group import RankMap
from tilewright.collectives.install import WHERE, install_rings
from tilewright.collectives.rings import InstallPlan
from tilewright.collectives.tuning import RingKeys, parse_ring
from tilewright.collectives.work import Workers
from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.engine.spec import Limits
from tilewright.errors import RequestError
from tilewright.executor.neighbour import Neighbours
from tilewright.host.distributed import Distributed
from tilewright.host.worker import Accelerator, Ahbm, DeviceSelector, Multiprocessing, parse_device
from tilewright.language.dtype import DType, dtype_of
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.parse import parse_machine
from tilewright.machine.spec import MachineSpec
from tilewright.memory.sanitizer.finding import Findings
from tilewright.runtime.deployment import Deployments
from tilewright.runtime.driver import Driver
from tilewright.runtime.launch.bind import Grid, LaunchOptions, On
from tilewright.runtime.launch.launch import Pending, launch
from tilewright.runtime.message import Message, submit_message
from tilewright.runtime.placement.placement import Targets
from tilewright.runtime.placement.policy import DPPolicy, LayoutWord
from tilewright.runtime.request import Completion, LaunchReport, Request
from tilewright.runtime.tensor.tensor import Tensor, host_tensor

DTypeName = DType | str | type | np.dtype[Any]


class RuntimeContext:
    """A machine, and what a host program may do with it.

    >>> from tilewright.host import DPPolicy
    >>> with RuntimeContext("ahbm-small") as torch:
    ...     a = torch.zeros((4, 4), dtype="f32", dp=DPPolicy(pe="row_wise"))
    ...     float(a.numpy().sum()), torch.now_ps > 0
    (0.0, True)
    """

    def __init__(
        self,
        machine: str | Path | MachineSpec | Machine = "ahbm",
        device: str = "all",
        *,
        seed: int = 0,
        engine: EngineKind | Auto | str = AUTO,
        data: bool = True,
        sanitize: bool = False,
        limits: Limits | None = None,
        correlation_id: str = "run",
    ) -> None:
        self.machine = _machine(machine)
        self.device: DeviceSelector = parse_device(device, self.machine.grid.num_sips)
        self.seed = seed
        self.carries_data = data
        self.driver = Driver(
            self.machine, _engine(engine),
            correlation_id=correlation_id, sanitize=sanitize, limits=limits,
        )  # fmt: skip
        self.ahbm = Ahbm(self.device)
        self.accelerator = Accelerator(self.ahbm)
        self.deployments = Deployments(self.driver, self._targets, carries_data=data)
        workers = Workers(self.driver)
        self.multiprocessing = Multiprocessing(workers)
        self.distributed = Distributed(self.driver, self.deployments, workers, carries_data=data)
        self.notes = self.distributed.notes  # for people: what happened that nobody asked for

    def __repr__(self) -> str:
        name = self.machine.spec.name
        return f"<RuntimeContext on {name!r}, device {self.device}, at {self.now_ps} ps>"

    @property
    def now_ps(self) -> int:
        """The simulated time."""
        return self.driver.now_ps

    @property
    def reports(self) -> tuple[LaunchReport, ...]:
        """Of the launches that are over, in the order in which they ended."""
        return tuple(self.driver.reports)

    @property
    def findings(self) -> Findings:
        """What the sanitizer has found until now; leaving the context raises it."""
        watch = self.driver.watch
        if watch is None:
            found, fix = "a context without a sanitizer", "make it with sanitize=True"
            raise RequestError("findings", found, "one that looks for wrong accesses", fix)
        return watch.sanitizer.findings

    # -- tensors ---------------------------------------------------------------------------------

    def zeros(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeName = "f16",
        *,
        dp: DPPolicy,
        name: str | None = None,
        timed: bool = True,
    ) -> Tensor:
        """A tensor of zeros; ``timed=False`` fills it outside of simulated time."""
        return self.full(shape, 0, dtype, dp=dp, name=name, timed=timed)

    def empty(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeName = "f16",
        *,
        dp: DPPolicy,
        name: str | None = None,
    ) -> Tensor:
        """A tensor whose memory nobody has written."""
        return self.deployments.empty(_shape(shape), dtype_of(dtype), dp=_policy(dp), name=name)

    def full(
        self,
        shape: int | tuple[int, ...],
        value: object,
        dtype: DTypeName = "f16",
        *,
        dp: DPPolicy,
        name: str | None = None,
        timed: bool = True,
    ) -> Tensor:
        """A tensor of one value."""
        kind = dtype_of(dtype)
        return self.deployments.full(
            _shape(shape), value, kind, dp=_policy(dp), name=name, timed=timed
        )

    def from_numpy(self, array: Any) -> Tensor:
        """A copy of an array, on the host: `copy_` brings it to a device tensor."""
        return host_tensor(array, self.deployments)

    def cleanup(self) -> None:
        """Wait for all that is under way and free every tensor; twice is as good as once."""
        self.distributed.wait_all()
        self.deployments.free_all()

    def close(self) -> None:
        """End all that is under way, without waiting for it; twice is as good as once.

        The handles of launches that were under way raise LaunchEndedError. Leaving a ``with``
        block by an error does the same. A context that nobody refers to any more ends by itself,
        unless something under way refers to it: a collective, or a kernel that names it.
        """
        self.driver.close()

    # -- launches and requests -------------------------------------------------------------------

    def launch(
        self,
        kernel: Any,
        *args: Any,
        grid: Grid | None = None,
        on: On | None = None,
        neighbours: Neighbours | InstallPlan | Mapping[Any, Mapping[str, Any]] | None = None,
        resident: int = 1,
        synchronised_start: bool = False,
        wait: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> Pending:
        """Run a kernel; a string in its place is the name, and the kernel follows.

        It runs where ``on`` says: PEs, a tensor whose owners compute, or a function of a program's
        ids. Else it runs on the PEs that hold a shard of an argument, and without any tensor on the
        PEs of the current device. Without a grid each of them runs one program.

        ``neighbours`` are rings of this launch, or a plan of ``install_ipcq``. Without them
        programs use the rings that were installed last on their PE.

        ``wait`` raises the error of a kernel. An error ends every launch that is under way: their
        handles raise LaunchEndedError. Stores that memories had served are visible, copies and
        deploys of the host complete, and the next launch finds idle PEs (ADR 0020). A message that
        no program has received when the launch ends is a MessageError.
        """
        if isinstance(kernel, str):
            if not args:
                fix = 'write launch("name", kernel, ...)'
                raise RequestError("launch", f"the name {kernel!r} alone", "a kernel", fix)
            name, kernel, args = name or kernel, args[0], args[1:]
        rings = (
            self.distributed.book.post_of(neighbours)
            if isinstance(neighbours, InstallPlan)
            else neighbours
        )
        options = LaunchOptions(
            name, grid, on, rings, resident, synchronised_start, self.carries_data
        )
        self.deployments.reclaim()
        pending = launch(self.driver, self.deployments, kernel, args, kwargs, options)
        if wait:
            pending.wait()
        return pending

    def submit(self, message: Message) -> Request:
        """Put a message on its way; returns its handle."""
        return submit_message(self.driver, self.deployments, message)

    def wait(self, handle: Request | Pending) -> Completion:
        """Wait for a request and return how it went; raise its failure."""
        return self.driver.wait(handle.request if isinstance(handle, Pending) else handle)

    def wait_all(self) -> None:
        """Wait for everything that was submitted, then raise the first failure.

        The failure of a launch is raised once: whoever has caught it may go on.
        """
        self.driver.wait_all()

    def is_completed(self, handle: Request | Pending) -> bool:
        """In simulated time, whoever waited for it."""
        return handle.is_completed

    def handles(self) -> list[Request]:
        """Return the requests of tensors, launches and messages, in the order of submission.

        Those that are under way or failed, and of all others the last 1024: ADR 0034.
        """
        return list(self.driver.requests)

    def install_ipcq(
        self,
        algorithm: str | None = None,
        ccl_yaml: str | Path | None = None,
        world_size_override: int | None = None,
        rank_to_pe: RankMap | None = None,
        *,
        topology: Topology | str | None = None,
        global_topology: Topology | str = Topology.NONE,
        w: int | None = None,
        h: int | None = None,
        **ring: Unpack[RingKeys],
    ) -> InstallPlan:
        """Install rings, which later launches on their PEs use; return who has which.

        Ranks are all PEs of the device, the first ``world_size_override`` of them, or those of
        ``rank_to_pe``. ``topology`` names the directions: ``ring_1d``, ``tree_binary``, ``none``,
        or ``mesh_2d`` and ``torus_2d`` of ``w`` columns and ``h`` rows. ``global_topology`` names
        those between SIPs. Other keywords are keys of ``ccl.yaml``. Simulated time passes.
        """
        said = AlgorithmEntry(
            algorithm or "", parse_ring(WHERE, ring), world_size=world_size_override, w=w, h=h,
            topology=None if topology is None else parse_topology(WHERE, topology),
        )  # fmt: skip
        between_sips = parse_topology(WHERE, global_topology)
        config = parse_config(ccl_yaml)
        self.distributed.note_config(config)
        pes = [pe for pe in self.machine.grid.pes() if pe.sip in self.device.sips]
        return install_rings(
            self.machine, self.distributed.book, config, said, pes, rank_to_pe, between_sips
        )

    # -- its life --------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self.cleanup()
                if self.driver.watch is not None:
                    self.driver.watch.sanitizer.findings.check()
        finally:
            self.close()

    def _targets(self, policy: DPPolicy) -> Targets:
        """A worker that is a PE, or has set its SIP, places there what names no SIPs."""
        if policy.sip != LayoutWord.REPLICATE or policy.num_sips is not None:
            return Targets.of_grid(self.machine.grid, self.device.sips)
        own = self.distributed.targets_of_caller()
        if own is not None:
            return own
        current = self.ahbm.current_device()
        sips = self.device.sips if current is None else (current,)
        return Targets.of_grid(self.machine.grid, sips)


def _machine(machine: str | Path | MachineSpec | Machine) -> Machine:
    if isinstance(machine, Machine):
        return machine
    spec = machine if isinstance(machine, MachineSpec) else parse_machine(machine)
    return build_machine(spec)


def _engine(engine: EngineKind | Auto | str) -> EngineKind | Auto:
    if not isinstance(engine, str):
        return engine
    kinds: dict[str, EngineKind | Auto] = {
        "auto": AUTO,
        **{kind.value: kind for kind in EngineKind},
    }
    if engine not in kinds:
        expected = "one of " + ", ".join(map(repr, kinds))
        raise RequestError("engine", repr(engine), expected, "name one of these")
    return kinds[engine]


def _shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    try:
        return tuple(map(index, shape if isinstance(shape, list | tuple) else (shape,)))
    except TypeError:
        fix = "write it like 8 or (8, 16)"
        raise RequestError("tensor", f"the shape {shape!r}", "whole numbers", fix) from None


def _policy(dp: object) -> DPPolicy:
    if not isinstance(dp, DPPolicy):
        fix = "write dp=DPPolicy(...)"
        raise RequestError("tensor", f"dp={dp!r}", "a DPPolicy", fix)
    return dp
