"""``torch.distributed`` of KernBench programs: groups, ranks, what all_reduce sums or refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.interop.kernbench.contexts import context, two_sips
from tests.interop.kernbench.worlds import RING, ccl_file, filled, run_ranks
from tilewright.errors import CollectiveError, SpecError, TilewrightError, UnknownAttributeError
from tilewright.interop.kernbench.context import RuntimeContext
from tilewright.interop.kernbench.multiprocessing import SpawnException
from tilewright.interop.kernbench.placement import DPPolicy
from tilewright.interop.kernbench.topology import resolve_topology

ALGORITHMS = "kernbench.ccl.algorithms"


def tile_of(rank: int, shape: tuple[int, ...] = (2, 32), dtype: Any = np.float16) -> Any:
    return np.random.default_rng(rank).integers(-8, 8, shape).astype(dtype)


# -- groups ----------------------------------------------------------------------------------------


def test_without_a_world_size_ranks_are_sips() -> None:
    torch = context(two_sips())
    dist = torch.distributed
    assert (dist.get_rank(), dist.is_available(), dist.is_initialized()) == (0, True, False)
    dist.init_process_group(backend="ahbm")
    assert (dist.get_world_size(), dist.get_backend(), dist.is_initialized()) == (2, "ahbm", True)


def test_the_entry_of_the_algorithm_says_how_many_ranks(tmp_path: Path) -> None:
    torch = context()
    torch.distributed.init_process_group(ccl_yaml=ccl_file(tmp_path, world_size=6))
    assert torch.distributed.get_world_size() == 6
    torch = context()
    with pytest.raises(ValueError, match=r"found world_size=3, expected 6, as .*ccl\.yaml line 4"):
        torch.distributed.init_process_group(
            world_size=3, ccl_yaml=ccl_file(tmp_path, world_size=6)
        )


def test_another_backend_and_a_second_call_are_refused() -> None:
    dist = context(two_sips()).distributed
    with pytest.raises(ValueError, match="found the backend 'nccl', expected 'ahbm'"):
        dist.init_process_group(backend="nccl")
    with pytest.raises(RuntimeError, match="get_world_size: found no process group"):
        dist.get_world_size()
    dist.init_process_group()
    with pytest.raises(RuntimeError, match="found a second call"):
        dist.init_process_group()
    dist.destroy_process_group()
    assert not dist.is_initialized()
    dist.init_process_group()


def test_workers_may_initialise_each_for_itself() -> None:
    torch, found = context(two_sips()), {}

    def worker(rank: int) -> None:
        torch.distributed.init_process_group(backend="ahbm", world_size=2, rank=rank)
        torch.accelerator.set_device_index(rank)
        tensor = filled(torch, tile_of(rank))
        torch.distributed.all_reduce(tensor)
        found[rank] = torch.distributed.get_rank(), tensor.numpy()

    torch.multiprocessing.spawn(worker, nprocs=2)
    for rank in range(2):
        assert found[rank][0] == rank
        np.testing.assert_array_equal(found[rank][1], tile_of(0) + tile_of(1))
    assert not torch.distributed.is_initialized()  # the program itself has none


@pytest.mark.parametrize(("options", "message"), [
    ({"rank": 1}, r"rank 0: .*found rank=1 in the worker of rank 0, expected rank=0"),
    ({"algorithm": "tree_allreduce"}, r"rank 1: .*expected 'tree_allreduce', as the others have"),
])  # fmt: skip
def test_a_worker_that_names_another_rank_or_algorithm_is_refused(
    options: dict[str, Any], message: str
) -> None:
    torch = context(two_sips())

    def worker(rank: int) -> None:
        torch.distributed.init_process_group(**({} if rank == 1 else options))
        torch.distributed.barrier()

    with pytest.raises(SpawnException, match=message):
        torch.multiprocessing.spawn(worker, nprocs=2)


# -- all_reduce over SIPs --------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["intercube_allreduce", "ring_allreduce_tcm",
                                       "ring_allreduce_sram", "tree_allreduce"])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_every_rank_gets_the_sum_over_ranks(algorithm: str, dtype: Any) -> None:
    def work(rank: int, torch: RuntimeContext) -> Any:
        tensor = filled(torch, tile_of(rank, dtype=dtype))
        torch.distributed.all_reduce(tensor)
        return tensor.numpy()

    for summed in run_ranks(work, algorithm=algorithm).values():
        np.testing.assert_array_equal(summed, tile_of(0) + tile_of(1))


@pytest.mark.parametrize("exchange", ["ring_1d", "torus_2d", "mesh_2d_no_wrap"])
def test_sips_exchange_as_the_topology_joins_them(exchange: str) -> None:
    graph = resolve_topology(
        {
            "system": {
                "sips": {"count": 6, "cubes_per_sip": 1, "topology": exchange, "w": 3, "h": 2}
            },
            "sip": {"cube_mesh": {"w": 1, "h": 1}},
            "cube": {"pe_layout": {"pe_per_corner": 1}, "memory_map": {"hbm_slices_per_cube": 4}},
        }
    )
    torch, found = context(graph.machine), {}
    torch.distributed.init_process_group()
    directions = torch.distributed.install_ipcq(rank_to_pe=None)["neighbors"][0]
    assert ("global_S" in directions) == (exchange != "ring_1d")
    assert ("global_W" in directions) == (exchange != "mesh_2d_no_wrap")

    def worker(rank: int) -> None:
        torch.ahbm.set_device(rank)
        tensor = filled(torch, tile_of(rank))
        torch.distributed.all_reduce(tensor)
        found[rank] = tensor.numpy()

    torch.multiprocessing.spawn(worker, nprocs=6)
    total = sum(tile_of(rank) for rank in range(6))
    for summed in found.values():
        np.testing.assert_array_equal(summed, total)


def test_a_program_without_workers_sums_the_shards_of_all_sips() -> None:
    torch = context(two_sips())
    torch.distributed.init_process_group()
    tensor = filled(torch, tile_of(3))  # a copy on each SIP
    torch.distributed.all_reduce(tensor)
    np.testing.assert_array_equal(tensor.numpy(), 2 * tile_of(3))


def test_shards_on_several_cubes_are_added_up_too_and_copies_are_not() -> None:
    notes: list[str] = []

    def work(rank: int, torch: RuntimeContext) -> Any:
        rows = filled(torch, tile_of(rank), DPPolicy(cube="row_wise", num_pes=1), f"rows{rank}")
        copies = filled(torch, tile_of(rank), DPPolicy(), f"copies{rank}")
        for tensor in (rows, copies):
            torch.distributed.all_reduce(tensor)
        notes[:] = torch.engine.host.notes
        return rows.numpy(), copies.numpy()

    total = tile_of(0) + tile_of(1)
    for rows, copies in run_ranks(work).values():
        np.testing.assert_array_equal(rows, [total.sum(axis=0)] * 2)
        np.testing.assert_array_equal(copies, total)
    assert any("'rows1': its shards on 2 cubes are added up too" in note for note in notes)
    assert any("'copies1': it has copies inside a SIP" in note for note in notes)


def test_a_barrier_takes_time_and_waits_for_all_ranks() -> None:
    def work(rank: int, torch: RuntimeContext) -> tuple[int, int]:
        if rank == 1:
            filled(torch, tile_of(1, (64, 64)))
        came = torch.engine.host.now_ps
        torch.distributed.barrier()
        return came, torch.engine.host.now_ps

    found = run_ranks(work)
    assert min(left for _, left in found.values()) > max(came for came, _ in found.values())


def test_calls_that_kernbench_lacks_work_on_its_tensors() -> None:
    def work(rank: int, torch: RuntimeContext) -> Any:
        own, parts = filled(torch, tile_of(rank)), [filled(torch, tile_of(9)) for _ in range(2)]
        torch.distributed.all_gather(parts, own)
        torch.distributed.all_reduce(own, op=torch.distributed.ReduceOp.MAX)
        return [each.numpy() for each in (*parts, own)]

    for first, second, largest in run_ranks(work).values():
        np.testing.assert_array_equal(first, tile_of(0))
        np.testing.assert_array_equal(second, tile_of(1))
        np.testing.assert_array_equal(largest, np.maximum(tile_of(0), tile_of(1)))


def test_a_name_that_torch_does_not_have_is_told_with_the_nearest_one() -> None:
    with pytest.raises(UnknownAttributeError, match="did you mean 'all_reduce'"):
        _ = context().distributed.all_redcue


# -- mistakes of ranks -----------------------------------------------------------------------------


def _no_device(torch: RuntimeContext) -> None:
    torch.distributed.init_process_group()

    def worker(rank: int) -> None:
        del rank
        torch.distributed.all_reduce(filled(torch, tile_of(0), name="x"))

    torch.multiprocessing.spawn(worker, nprocs=2)


def _one_worker(torch: RuntimeContext) -> None:
    torch.distributed.init_process_group()
    torch.ahbm.set_device(0)
    tensor = filled(torch, tile_of(0), name="x")
    torch.multiprocessing.spawn(lambda _: torch.distributed.all_reduce(tensor), nprocs=1)


def _rank_leaves(torch: RuntimeContext) -> None:
    torch.distributed.init_process_group()

    def worker(rank: int) -> None:
        torch.ahbm.set_device(rank)
        tensor = filled(torch, tile_of(rank), name="x")
        if rank == 0:
            torch.distributed.all_reduce(tensor)

    torch.multiprocessing.spawn(worker, nprocs=2)


def _other_pe(torch: RuntimeContext) -> None:
    torch.distributed.init_process_group()
    rows = DPPolicy(pe="row_wise", num_cubes=1, num_pes=2)
    torch.distributed.all_reduce(filled(torch, tile_of(0), rows, "x"))


def _no_group(torch: RuntimeContext) -> None:
    torch.distributed.all_reduce(filled(torch, tile_of(0)))


def _an_array(torch: RuntimeContext) -> None:
    torch.distributed.init_process_group()
    torch.distributed.all_reduce(tile_of(0))


MISTAKES: dict[str, tuple[Callable[[RuntimeContext], None], str]] = {
    "no device": (_no_device, r"'x' on SIP 0, SIP 1, expected one on SIP 0; call .*set_device"),
    "one worker": (_one_worker, r"a call by one of 1 workers, expected 2 workers: the 2 ranks are"),
    "a rank leaves": (_rank_leaves, r"rank 0 waits in all_reduce of tensor 'x'; rank 1 has ended"),
    "a PE that nobody reads": (_other_pe, r"'x' with a shard on PE 1 of cube 0, expected what"),
    "no group": (_no_group, r"all_reduce: found no process group"),
    "an array": (_an_array, r"expected a tensor in the machine"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_ranks_is_named(mistake: str) -> None:
    make, message = MISTAKES[mistake]
    with pytest.raises(TilewrightError, match=message):
        make(context(two_sips()))


# -- all_reduce over PEs ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size", "keys"),
    [
        ("ring", 4, {"buffer_kind": "hbm", "n_slots": 1}),
        ("ring", 8, {"backpressure": "poll", "slot_size": 64, "ipcq_credit_size_bytes": 32}),
        ("tree", 7, {"buffer_kind": "sram"}),
        ("ring", 7, {}),
        ("mesh", 4, {"n_elem": 32}),
        ("hierarchical", 16, {}),
    ],
)
def test_every_pe_gets_the_sum_over_pes(
    name: str, size: int, keys: dict[str, Any], tmp_path: Path
) -> None:
    torch = context()
    file = ccl_file(tmp_path, f"{ALGORITHMS}.{name}_allreduce", world_size=size, **keys)
    torch.distributed.init_process_group(ccl_yaml=file)
    tiles = tile_of(size, (size, 32))
    dp = DPPolicy(cube="row_wise", pe="row_wise", num_cubes=-(-size // 4))
    tensor = filled(torch, tiles, dp)  # of 7 ranks the eighth PE has no row, and runs too
    torch.distributed.all_reduce(tensor)
    np.testing.assert_array_equal(tensor.numpy(), [tiles.sum(axis=0)] * size)


def test_the_three_levels_of_the_hierarchical_algorithm_reach_other_sips(tmp_path: Path) -> None:
    torch = context(two_sips())
    file = ccl_file(tmp_path, f"{ALGORITHMS}.hierarchical_allreduce", world_size=16)
    torch.distributed.init_process_group(ccl_yaml=file)
    tiles = tile_of(5, (16, 8))
    tensor = filled(torch, tiles, DPPolicy(sip="row_wise", cube="row_wise", pe="row_wise"))
    torch.distributed.all_reduce(tensor)
    np.testing.assert_array_equal(tensor.numpy(), [tiles.sum(axis=0)] * 16)


@pytest.mark.parametrize(
    ("shape", "dp", "message"),
    [
        ((4, 8), DPPolicy(pe="row_wise", num_cubes=1, num_pes=2), r"2 shards for 4 ranks"),
        ((5, 8), DPPolicy(pe="row_wise", num_cubes=1), r"shards of 16 and 32 bytes"),
        ((4, 8), DPPolicy(num_cubes=1), r"copies on the PEs 0, 1, 2, 3 of 1 cube"),
        ((4, 8), DPPolicy(cube="row_wise", num_pes=1), r"shards on the PEs 0 of 4 cubes"),
    ],
)
def test_a_tensor_that_is_not_a_tile_a_rank_is_refused(
    shape: tuple[int, int], dp: DPPolicy, message: str, tmp_path: Path
) -> None:
    torch = context()
    torch.distributed.init_process_group(ccl_yaml=ccl_file(tmp_path, world_size=4))
    with pytest.raises(CollectiveError, match=message):
        torch.distributed.all_reduce(torch.zeros(shape, dp=dp))


def test_ranks_that_are_pes_have_one_driver(tmp_path: Path) -> None:
    torch = context(two_sips())
    torch.distributed.init_process_group(ccl_yaml=ccl_file(tmp_path, world_size=4))
    tensor = torch.zeros((4, 8), dp=DPPolicy(pe="row_wise", num_sips=1, num_cubes=1))
    message = r"a call by one of 2 workers, expected 1 workers: the 4 ranks are PEs"
    with pytest.raises(SpawnException, match=message):
        torch.multiprocessing.spawn(lambda _: torch.distributed.all_reduce(tensor), nprocs=2)
    with pytest.raises(CollectiveError, match=r"4 ranks that are PEs of one driver.*SIPs as ranks"):
        torch.distributed.broadcast(tensor, src=0)


# -- algorithms of a user --------------------------------------------------------------------------

PAIRS = """
def kernel_args(world_size, n_elem):
    return n_elem, world_size


def kernel(t_ptr, n_elem, world_size, tl):
    rank = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    at = t_ptr + rank * n_elem * 2
    own = total = tl.load(at, (n_elem,), "f16")
    others = [peer for peer in range(world_size) if peer != rank]
    for peer in others:
        tl.send(f"rank{peer}", own)
    for peer in others:
        total = total + tl.recv(f"rank{peer}", (n_elem,), "f16")
    tl.store(at, total)
"""


def test_a_module_without_a_topology_has_a_ring_to_every_rank(tmp_path: Path) -> None:
    (tmp_path / "pairs_allreduce.py").write_text(PAIRS)
    torch = context()
    torch.distributed.init_process_group(
        ccl_yaml=ccl_file(tmp_path, "pairs_allreduce", world_size=4)
    )
    dp = DPPolicy(pe="row_wise", num_cubes=1)
    tiles = tile_of(4, (4, 32))
    tensor = filled(torch, tiles, dp)
    torch.distributed.all_reduce(tensor)
    np.testing.assert_array_equal(tensor.numpy(), [tiles.sum(axis=0)] * 4)
    with pytest.raises(CollectiveError, match=r"of f32, expected f16: .* has no parameter DTYPE"):
        torch.distributed.all_reduce(torch.zeros((4, 32), "f32", dp=dp))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"'odd_allreduce' without a function kernel, expected a module with kernel and"),
        (
            PAIRS.replace("n_elem):\n    return", "n_elem, color):\n    return"),
            r"parameter 'color'",
        ),
        (
            "import not_there\n",
            r"cannot be imported \(ModuleNotFoundError: No module named 'not_there'\)",
        ),
    ],
)
def test_a_module_that_is_no_algorithm_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "odd_allreduce.py").write_text(text)
    torch, file = context(), ccl_file(tmp_path, "odd_allreduce", world_size=4)
    tensor = torch.zeros((4, 8), dp=DPPolicy(pe="row_wise", num_cubes=1))

    def reduce() -> None:
        torch.distributed.init_process_group(ccl_yaml=file)
        torch.distributed.all_reduce(tensor)

    with pytest.raises((SpecError, CollectiveError), match=message):
        reduce()


def test_the_algorithm_between_cubes_needs_sips_as_ranks(tmp_path: Path) -> None:
    file = ccl_file(tmp_path, f"{ALGORITHMS}.intercube_allreduce", world_size=4)
    with pytest.raises(CollectiveError, match=r"4 ranks on 2 SIPs, expected SIPs as the ranks"):
        context(two_sips()).distributed.init_process_group(ccl_yaml=file)


# -- validators ------------------------------------------------------------------------------------


def test_a_validator_of_the_program_sees_each_call_and_may_refuse_it(tmp_path: Path) -> None:
    torch, seen = context(), []
    dist = torch.distributed
    dist.init_process_group(ccl_yaml=ccl_file(tmp_path, world_size=4))

    def check(tensor: Any, world_size: int, config: Any) -> None:
        seen.append((tensor.name, world_size, config["module"], config["ranks"]))
        if tensor.name == "wrong":
            raise ValueError("not this one")

    dist.register_validator("mine", check)
    dp = DPPolicy(pe="row_wise", num_cubes=1)
    right, wrong = (torch.zeros((4, 8), dp=dp, name=name) for name in ("right", "wrong"))
    dist.all_reduce(right)
    before = len(torch.handles())
    with pytest.raises(ValueError, match="not this one"):
        dist.all_reduce(wrong)
    assert len(torch.handles()) == before  # nothing of it was submitted
    assert seen == [(name, 4, RING, "pe") for name in ("right", "wrong")]
    dist.unregister_validator("mine")
    dist.all_reduce(wrong)


def test_a_message_larger_than_a_slot_is_refused_until_its_validator_is_removed(
    tmp_path: Path,
) -> None:
    torch = context()
    dist = torch.distributed
    dist.init_process_group(ccl_yaml=ccl_file(tmp_path, world_size=4, slot_size=16))
    tiles = tile_of(1, (4, 24))
    tensor = filled(torch, tiles, DPPolicy(pe="row_wise", num_cubes=1))
    with pytest.raises(
        CollectiveError, match=r"messages of 48 bytes.*expected at most slot_size=16"
    ):
        dist.all_reduce(tensor)
    dist.unregister_validator("slot_size")
    dist.all_reduce(tensor)
    np.testing.assert_array_equal(tensor.numpy(), [tiles.sum(axis=0)] * 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda dist: dist.register_validator("slot_size", print), r"two validators 'slot_size'"),
        (lambda dist: dist.register_validator("new", 3), r"found 3, expected a function"),
        (lambda dist: dist.unregister_validator("old"), r"'old', expected one of shard_size"),
    ],
)
def test_a_wrong_registration_is_refused(call: Callable[[Any], None], message: str) -> None:
    with pytest.raises(TilewrightError, match=message):
        call(context().distributed)
