"""The backend of a process group: an algorithm of ``ccl.yaml``, its ranks, its rings, its calls."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tilewright.collectives.tuning import RING_KEYS
from tilewright.errors import CollectiveError
from tilewright.interop.kernbench.ccl.algorithms.intercube_allreduce import RING_1D
from tilewright.interop.kernbench.ccl.config import (
    DTYPE,
    SIP_RANK,
    AlgorithmConfig,
    load_algorithm,
    with_defaults,
)
from tilewright.interop.kernbench.ccl.install import install_wiring
from tilewright.interop.kernbench.ccl.validator import ValidatorRegistry
from tilewright.interop.kernbench.ccl.wiring import INTERCUBE, plan_wiring, plan_world, sip_exchange
from tilewright.interop.kernbench.engine import GraphEngine
from tilewright.interop.kernbench.tensor import Tensor
from tilewright.interop.kernbench.value import dtype_itemsize

WHERE = "all_reduce"
ONE_PE = "place it with DPPolicy(num_cubes=1, num_pes=1), or replicate it"


class CollectiveContext(Protocol):
    """The part of a runtime context that collectives use."""

    engine: GraphEngine
    sips: tuple[int, ...]

    def launch(
        self, kernel_name: str, kernel_fn: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Run a kernel on the PEs of its tensors."""

    def wait(self, handle: Any, *, _meta: Any = None) -> Any:
        """Wait for a launch."""


@dataclass(slots=True)
class _Reduction:
    """A call of ``all_reduce``, for the report of ranks that wait for ever."""

    what: str
    is_over: bool = False

    def is_completed(self) -> bool:
        return self.is_over


class AhbmCCLBackend:
    """Ranks with rings, and the all-reduce of one algorithm on them.

    Ranks are SIPs where the machine has as many, else PEs of one driver.
    """

    def __init__(
        self,
        context: CollectiveContext,
        config: AlgorithmConfig,
        validators: ValidatorRegistry,
        world_size: int | None = None,
    ) -> None:
        self._context = context
        self._host = context.engine.host
        self._validators = validators
        self.algorithm = load_algorithm(config)
        machine = self._host.machine
        size = config.get("world_size") or world_size
        where = config.where("world_size")
        self.world = plan_world(where, machine.grid, context.sips, size, sips_first=True)
        ranks = "sip" if self.world.ranks_are_sips else "pe"
        self.config = AlgorithmConfig({**config, "ranks": ranks}, config.name, config.source)
        if self.algorithm.topology == INTERCUBE and not self.world.ranks_are_sips:
            found = f"{self.world.size} ranks on {len(context.sips)} SIPs"
            fix = "leave world_size out, or name another algorithm"
            raise CollectiveError(where, found, f"SIPs as the ranks of {config.name!r}", fix)
        self._wiring = plan_wiring(where, machine, self.algorithm, config, self.world)

    @property
    def rank(self) -> int | None:
        """The rank of the calling worker; None outside of workers."""
        return self._host.multiprocessing.workers.rank

    def install(self) -> None:
        """Tell PEs their rings, once; later calls make them the default of launches again."""
        install_wiring(self._host, self.config, self._wiring)

    def join_host(self) -> None:
        """Let the caller join a process group of our host, with the rings of ``ccl.yaml``."""
        if not self.world.ranks_are_sips:
            found = f"{self.world.size} ranks that are PEs of one driver"
            fix = "leave world_size out of ccl.yaml and spawn a worker a SIP"
            raise CollectiveError(self.config.where("world_size"), found, "SIPs as ranks", fix)
        if not self._host.distributed.is_initialized():
            ring = {key: self.config[key] for key in RING_KEYS if key in self.config}
            self._host.distributed.init_process_group(world_size=self.world.size, **ring)

    # -- all_reduce ------------------------------------------------------------------------------

    def all_reduce(self, tensor: Tensor) -> None:
        """Sum in place, as the algorithm's kernel does it; wait for the result.

        Where ranks are PEs every shard becomes the sum of all shards. Where ranks are SIPs a tensor
        becomes the sum over ranks; shards on several cubes are added up too, as in KernBench, and
        copies inside a SIP all get the element-wise sum (KernBench leaves them stale or adds them).
        """
        self._check_worker()
        self._validators.check(tensor, self.world.size, self.config)
        if self.world.ranks_are_sips:
            self._check_sips(tensor)
            if _has_copies(tensor):
                self._reduce_copies(tensor)
                return
            self._check_reached(tensor)
        else:
            self._check_tiles(tensor)
        self._launch(tensor)

    def _launch(self, tensor: Tensor) -> None:
        kernel, args = self._kernel(tensor), self._arguments(tensor)
        name = self.config.name if self.rank is None else f"{self.config.name}_rank{self.rank}"
        self.install()
        deferred = self._context.launch(
            name, kernel, tensor, *args, _defer_wait=True, _auto_dim_remap=False
        )
        call = _Reduction(f"all_reduce of tensor {tensor.name!r}")
        self._host.multiprocessing.workers.note_call(call)
        for handle, _, fields in deferred:
            self._context.wait(handle, _meta=fields)
        call.is_over = True

    def _kernel(self, tensor: Tensor) -> Callable[..., Any]:
        """Return the kernel for a dtype and, where it asks for it, for a rank."""
        constants: dict[str, Any] = {}
        if self.algorithm.takes(DTYPE):
            constants[DTYPE] = tensor.dtype
        elif tensor.dtype != "f16":
            found = f"tensor {tensor.name!r} of {tensor.dtype}"
            expected = f"f16: the kernel of {self.config.name!r} has no parameter {DTYPE}"
            fix = f'use f16, or give the kernel a parameter {DTYPE}="f16" behind tl'
            raise CollectiveError(WHERE, found, expected, fix)
        if self.world.ranks_are_sips and self.algorithm.takes(SIP_RANK):
            constants[SIP_RANK] = self._sip_rank("its rank in the kernel")
        kernel = self.algorithm.kernel
        return with_defaults(kernel, constants) if constants else kernel

    def _arguments(self, tensor: Tensor) -> tuple[Any, ...]:
        n_elem = tensor.shards[0].nbytes // dtype_itemsize(tensor.dtype)
        facts: dict[str, int] = {}
        if self.algorithm.topology == INTERCUBE:
            machine = self._host.machine
            exchange = sip_exchange(WHERE, machine, self.config, self.world.size)
            columns, rows = _cube_mesh(tensor, machine.spec.sip.columns)
            needs_rank = exchange.kind != RING_1D and self.world.size > 1
            facts = {
                "cube_w": columns,
                "cube_h": rows,
                "n_sips": self.world.size,
                "sip_rank": self._sip_rank(exchange.name) if needs_rank else self.rank or 0,
                "sip_topo_kind": exchange.kind,
                "sip_topo_w": exchange.columns,
                "sip_topo_h": exchange.rows,
            }
            if columns * rows > 1:
                self._note(
                    f"all_reduce of tensor {tensor.name!r}: its shards on {columns * rows} cubes"
                    " are added up too, as in KernBench; a tensor on one cube, or copies, are"
                    " summed over ranks alone"
                )
        return self.algorithm.arguments(self.world.size, n_elem, facts)

    def _sip_rank(self, why: str) -> int:
        if self.rank is None and self.world.size > 1:
            found = f"one driver for {self.world.size} SIPs"
            fix = "call it in a worker a SIP: torch.multiprocessing.spawn"
            raise CollectiveError(WHERE, found, f"a worker a SIP ({why})", fix)
        return self.rank or 0

    def _note(self, text: str) -> None:
        """Add a note to the run, once."""
        if text not in self._host.notes:
            self._host.notes.append(text)

    def _reduce_copies(self, tensor: Tensor) -> None:
        self.join_host()
        self._host.distributed.all_reduce(tensor.in_machine.memory)
        self._note(
            f"all_reduce of tensor {tensor.name!r}: it has copies inside a SIP, so it is summed"
            f" over ranks by our own collectives and not by {self.config.name!r}"
        )

    # -- who may call with which tensor ----------------------------------------------------------

    def _check_worker(self) -> None:
        num_workers = self._host.multiprocessing.workers.num_workers
        expected = self.world.size if self.world.ranks_are_sips else 1
        if num_workers not in (0, expected):
            found = f"a call by one of {num_workers} workers"
            kind = "SIPs" if self.world.ranks_are_sips else "PEs of one driver"
            text = f"{expected} workers: the {self.world.size} ranks are {kind}"
            fix = "correct nprocs of spawn, or world_size in ccl.yaml"
            raise CollectiveError(WHERE, found, text, fix)

    def _check_sips(self, tensor: Tensor) -> None:
        """Refuse a tensor that is not on the SIPs whose sum the caller asks for."""
        wanted = {pe.sip for pe in self.world.pes}
        if self.rank is not None:
            wanted = {self.world.pes[self.rank].sip}
        there = {shard.sip for shard in tensor.shards}
        if there != wanted:
            found = f"tensor {tensor.name!r} on {_sips_text(there)}"
            fix = "call torch.ahbm.set_device(rank) before the tensor is made"
            if self.rank is None:
                fix = "call it in workers: torch.multiprocessing.spawn"
            raise CollectiveError(WHERE, found, f"one on {_sips_text(wanted)}", fix)

    def _check_reached(self, tensor: Tensor) -> None:
        """Refuse shards that the algorithm's kernel never works on."""
        is_intercube = self.algorithm.topology == INTERCUBE
        missed = [
            shard
            for shard in tensor.shards
            if shard.pe != 0 or (shard.cube != 0 and not is_intercube)
        ]
        if missed:
            where = f"PE {missed[0].pe} of cube {missed[0].cube}"
            found = f"tensor {tensor.name!r} with a shard on {where}"
            which = "each cube" if is_intercube else "cube 0"
            expected = f"what {self.config.name!r} works on: PE 0 of {which}"
            raise CollectiveError(WHERE, found, expected, ONE_PE)

    def _check_tiles(self, tensor: Tensor) -> None:
        """Refuse a tensor whose k-th shard is not the k-th rank's."""
        tiles = sorted(tensor.shards, key=lambda shard: shard.offset_bytes)
        places = [(shard.sip, shard.cube, shard.pe) for shard in tiles]
        wanted = [(pe.sip, pe.cube, pe.pe) for pe in self.world.pes]
        if _has_copies(tensor) or places != wanted:
            kind = "copies" if _has_copies(tensor) else "shards"
            count = len({(shard.sip, shard.cube) for shard in tiles})
            pes = ", ".join(map(str, sorted({shard.pe for shard in tiles})))
            where = f"the PEs {pes} of {count} cube{'s' if count > 1 else ''}"
            found = f"tensor {tensor.name!r} with {kind} on {where}"
            expected = f"a shard of its own for each of the {self.world.size} first PEs"
            fix = "split it over these PEs, such as DPPolicy(pe='row_wise', num_cubes=1)"
            raise CollectiveError(WHERE, found, expected, fix)


def _has_copies(tensor: Tensor) -> bool:
    """Tell whether some SIP has the same bytes of a tensor twice."""
    count = Counter((shard.sip, shard.offset_bytes) for shard in tensor.shards)
    return any(number > 1 for number in count.values())


def _cube_mesh(tensor: Tensor, mesh_columns: int) -> tuple[int, int]:
    """Return columns and rows of the cubes that have shards; (1, 1) for one cube."""
    cubes = sorted({shard.cube for shard in tensor.shards})
    if len(cubes) == 1:
        return 1, 1
    columns = min(len(cubes), mesh_columns)
    if cubes != list(range(len(cubes))) or len(cubes) % columns:
        found = f"tensor {tensor.name!r} on the cubes {', '.join(map(str, cubes))}"
        fix = "choose num_cubes as one row of cubes, or as several whole rows"
        raise CollectiveError(WHERE, found, f"whole rows of {mesh_columns} cubes", fix)
    return columns, len(cubes) // columns


def _sips_text(sips: set[int]) -> str:
    return ", ".join(f"SIP {sip}" for sip in sorted(sips)) or "no SIP"
