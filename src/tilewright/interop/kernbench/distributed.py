"""``torch.distributed`` of KernBench programs: ``kernbench.runtime_api.distributed``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from tilewright.collectives.operation import Reduction
from tilewright.errors import CollectiveError, ProgramError, UnknownAttributeError, meant
from tilewright.interop.kernbench.ccl.backend import AhbmCCLBackend, CollectiveContext
from tilewright.interop.kernbench.ccl.config import (
    AlgorithmConfig,
    CclConfig,
    load_ccl_config,
    resolve_algorithm_config,
)
from tilewright.interop.kernbench.ccl.install import IpcqPlan, install_ipcq
from tilewright.interop.kernbench.ccl.validator import Validator, ValidatorRegistry
from tilewright.interop.kernbench.ccl.wiring import Place
from tilewright.interop.kernbench.tensor import Tensor
from tilewright.interop.kernbench.value import RuntimeProgramError, ValueProgramError, whole_number

# ruff: noqa: ARG002 - signatures are those of KernBench

BACKEND = "ahbm"

ADDED = (
    "all_gather", "all_gather_into_tensor", "all_to_all", "all_to_all_single", "broadcast",
    "gather", "irecv", "isend", "new_group", "recv", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "send",
)  # fmt: skip
"""Calls of torch that KernBench lacks: our own collectives, where ranks are SIPs."""

Member = tuple[int, int | None]
"""A run of workers and a rank of it; (0, None) is the program outside of workers."""


class DistributedContext:
    """Process groups of a KernBench context, and the calls that its ranks make.

    A group that the program initialises before ``spawn`` is that of all its workers; a worker may
    also initialise for itself, as in torch.
    """

    ReduceOp = Reduction

    def __init__(self, context: CollectiveContext) -> None:
        self.context = context
        self.validators = ValidatorRegistry()
        self._joined: dict[Member, AhbmCCLBackend] = {}
        _latest[BACKEND] = self

    # -- groups ----------------------------------------------------------------------------------

    def init_process_group(
        self,
        backend: str | None = BACKEND,
        init_method: str | None = None,
        timeout: object = None,
        world_size: int = -1,
        rank: int = -1,
        store: object = None,
        group_name: str = "",
        pg_options: object = None,
        device_id: object = None,
        *,
        algorithm: str | None = None,
        ccl_yaml: str | Path | CclConfig | None = None,
    ) -> None:
        """Read ``ccl.yaml``, import the algorithm and install its rings; simulated time passes.

        The number of ranks is that of the algorithm's entry, of the defaults, of ``world_size``, or
        of SIPs. How processes find each other (``init_method``, ``store`` and the like) has no
        meaning here. Raises ValueError for another backend.
        """
        where = "init_process_group"
        if backend not in (None, BACKEND):
            found = f"the backend {backend!r}"
            raise ValueProgramError(where, found, repr(BACKEND), "name this one, or none")
        if self._caller in self._joined:
            fix = "call destroy_process_group first"
            raise RuntimeProgramError(where, "a second call", "one by the program or a rank", fix)
        mine = self._workers.rank
        if rank != -1 and mine is not None and rank != mine:
            found = f"rank={rank} in the worker of rank {mine}"
            raise ValueProgramError(where, found, f"rank={mine}", "pass the rank that spawn gave")
        config = self._config(algorithm, ccl_yaml)
        said = None if world_size == -1 else world_size
        made = self._shared(config) or AhbmCCLBackend(
            self.context, config, self.validators, said or self._workers.num_workers or None
        )
        if said not in (None, made.world.size):
            found, expected = f"world_size={said}", f"{made.world.size}, as {config.where()} says"
            raise ValueProgramError(where, found, expected, "leave it out, or correct ccl.yaml")
        self._joined[self._caller] = made  # before the wait: other workers join this one
        made.install()

    def _config(
        self, algorithm: str | None, ccl_yaml: str | Path | CclConfig | None
    ) -> AlgorithmConfig:
        file = ccl_yaml if isinstance(ccl_yaml, CclConfig) else load_ccl_config(ccl_yaml)
        notes = self.context.engine.host.notes
        for line in (f"collectives as in {file.path}", *file.without_effect):
            if line not in notes:
                notes.append(line)
        return resolve_algorithm_config(file, algorithm)

    def _shared(self, config: AlgorithmConfig) -> AhbmCCLBackend | None:
        """Return the group that other workers of this run, or the program, have made."""
        run = self._caller[0]
        for (other_run, _), made in self._joined.items():
            if other_run not in (0, run):
                continue
            is_same = made.config.name == config.name and {**made.config, **config} == made.config
            if not is_same:
                found = f"the algorithm {config.name!r} with {dict(config)}"
                expected = f"{made.config.name!r}, as the others have"
                fix = "let all ranks name the same file and algorithm"
                raise CollectiveError("init_process_group", found, expected, fix)
            return made
        return None

    def destroy_process_group(self, group: object = None) -> None:
        """Leave the group that the caller has initialised; workers cannot end the program's."""
        if group is None:
            self._group("destroy_process_group")
            self._joined.pop(self._caller, None)

    def is_initialized(self) -> bool:
        """Tell whether the caller has a process group: its own, or the program's."""
        return self._found is not None

    @staticmethod
    def is_available() -> bool:
        """Tell that there are process groups."""
        return True

    def get_backend(self, group: object = None) -> str:
        """Return the name of the backend."""
        self._group("get_backend")
        return BACKEND

    def get_rank(self, group: object = None) -> int:
        """Return the rank of the calling worker; 0 outside of workers."""
        return self._workers.rank or 0

    def get_world_size(self, group: object = None) -> int:
        """Return the number of ranks."""
        return self._group("get_world_size").world.size

    # -- calls -----------------------------------------------------------------------------------

    def all_reduce(
        self, tensor: Tensor, op: Any = Reduction.SUM, group: Any = None, async_op: bool = False
    ) -> Any:
        """Sum in place by the algorithm of ``ccl.yaml`` (see `AhbmCCLBackend.all_reduce`).

        Another ``op``, a ``group`` or ``async_op`` is a call of our own collectives.
        """
        if not isinstance(tensor, Tensor):
            fix = "pass a tensor of torch.zeros or torch.empty"
            raise CollectiveError("all_reduce", repr(tensor), "a tensor in the machine", fix)
        if op == Reduction.SUM and group is None and not async_op:
            self._group("all_reduce").all_reduce(tensor)
            return None
        return self._added("all_reduce")(tensor, op, group, async_op)

    def barrier(self, group: Any = None, async_op: bool = False, device_ids: object = None) -> Any:
        """Wait until all workers have come; outside of workers nothing happens.

        KernBench's barrier does nothing. Here values are the same and simulated time passes.
        """
        self._group("barrier")
        if self._workers.rank is None:
            return None
        return self._added("barrier")(group, async_op)

    def register_validator(self, name: str, fn: Validator) -> None:
        """Let ``fn(tensor, world_size, config)`` check every all_reduce before it is submitted."""
        self.validators.register_validator(name, fn)

    def unregister_validator(self, name: str) -> None:
        """Remove a validator, a built-in one included."""
        self.validators.unregister_validator(name)

    def install_ipcq(
        self,
        algorithm: str | None = None,
        ccl_yaml: str | Path | None = None,
        world_size_override: int | None = None,
        rank_to_pe: Sequence[Place] | None = None,
    ) -> IpcqPlan:
        """Install the rings of an algorithm for kernels of the program; return who has which.

        Without a world size and a map every PE of the device is a rank.
        """
        config = self._config(algorithm, ccl_yaml)
        if world_size_override is not None:
            config["world_size"] = size = whole_number(world_size_override)
            if size is None:
                found = f"world_size_override={world_size_override!r}"
                expected = "a number of ranks, or None"
                raise CollectiveError("install_ipcq", found, expected, "correct it")
        return install_ipcq(self.context.engine, None, config, rank_to_pe=rank_to_pe)

    # -- calls that KernBench lacks --------------------------------------------------------------

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in ADDED:
            return self._added(name)
        fix = meant(name, [*ADDED, *dir(type(self))], "use one of torch's calls")
        raise UnknownAttributeError("torch.distributed", f"no name {name!r}", "a known name", fix)

    def _added(self, name: str) -> Callable[..., Any]:
        """Return a call of our own collectives, on the memory of KernBench tensors."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self._group(name).join_host()
            named = {key: _in_machine(value) for key, value in kwargs.items()}
            ours = getattr(self.context.engine.host.distributed, name)
            return ours(*map(_in_machine, args), **named)

        return call

    # -- who calls -------------------------------------------------------------------------------

    @property
    def _workers(self) -> Any:
        return self.context.engine.host.multiprocessing.workers

    @property
    def _caller(self) -> Member:
        rank = self._workers.rank
        return (0, None) if rank is None else (self._workers.num_runs, rank)

    @property
    def _found(self) -> AhbmCCLBackend | None:
        return self._joined.get(self._caller) or self._joined.get((0, None))

    def _group(self, where: str) -> AhbmCCLBackend:
        found = self._found
        if found is None:
            fix = 'call torch.distributed.init_process_group(backend="ahbm") first'
            raise RuntimeProgramError(where, "no process group", "one that is initialised", fix)
        return found


_latest = WeakValueDictionary[str, DistributedContext]()  # of the context that was made last


def latest_distributed(where: str) -> DistributedContext:
    """Return ``torch.distributed`` of the newest context; refuse a call without any."""
    found = _latest.get(BACKEND)
    if found is None:
        fix = "make a RuntimeContext first"
        raise ProgramError(where, "no runtime context", "one whose ranks are meant", fix)
    return found


def _in_machine(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.in_machine.memory
    if isinstance(value, list | tuple):
        return [_in_machine(each) for each in value]
    return value
