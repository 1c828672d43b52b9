from functools import cache
from typing import Any

import numpy as np
import pytest

from tilewright import language as tl
from tilewright.errors import (
    DeadlockError,
    KernelError,
    PageFaultError,
    PlacementError,
    TensorError,
)
from tilewright.host import (
    DPPolicy,
    Interleave,
    LaunchReport,
    LocalShard,
    LocalSize,
    PeCoord,
    RuntimeContext,
    Tensor,
)
from tilewright.machine import Machine, build_machine, parse_machine

PAGE = 65_536
PAGES = DPPolicy(pe=Interleave(PAGE), num_cubes=1)
ONE = DPPolicy(num_sips=1, num_cubes=1, num_pes=1)
COLUMNS = DPPolicy(pe="column_wise", num_cubes=1)


@cache
def machine(name: str) -> Machine:
    return build_machine(parse_machine(name))


def context(name: str = "ahbm-small", device: str = "all", **options: Any) -> RuntimeContext:
    return RuntimeContext(machine(name), device, **options)


def add(x: Any, y: Any, out: Any, n: Any, block: Any) -> None:
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    inside = offsets < n
    total = tl.load(x + offsets, mask=inside) + tl.load(y + offsets, mask=inside)
    tl.store(out + offsets, total, mask=inside)


def note_place(out: Any) -> None:
    """Each program of a grid says which PE it runs on."""
    flat = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    tl.store(out + flat, tl.program_id("pe"))


def triple(torch: RuntimeContext, n: int, dp: DPPolicy = PAGES) -> list[Tensor]:
    tensors = [torch.empty(n, "f32", dp=dp) for _ in range(3)]
    for number, tensor in enumerate(tensors[:2], start=1):
        tensor.copy_(np.full(n, number, np.float32), timed=False)
    return tensors


def test_a_grid_is_dealt_to_the_pes_that_have_the_tensors() -> None:
    with context() as torch:
        x, y, out = triple(torch, 50_000)
        report = torch.launch("sum", add, x, y, out, 50_000, grid=(49,), block=1024).report
        assert (out.numpy() == 3).all()
        assert set(report.pes) == {shard.home for shard in x.shards}
    assert (report.name, report.kernel, report.num_programs) == ("sum", "add", 49)
    assert report.counters.stores == 49


def test_the_times_of_a_launch_add_up() -> None:
    with context("ahbm", "sip:0") as torch:
        tensor = torch.zeros((128, 64), dp=DPPolicy(cube="row_wise", pe="row_wise"))
        before_ps = torch.now_ps

        def touch(x: Any, tl: Any) -> None:
            tl.store(x, tl.load(x) + 1)

        report = torch.launch(touch, LocalShard(tensor)).report
        assert (report.submitted_ps, report.completed_ps) == (before_ps, torch.now_ps)
        assert tensor.numpy()[:, 0].tolist() == [1] * 128
    parts = report.dispatch_ps + report.execution_ps + report.completion_ps
    assert report.latency_ps == parts
    assert min(report.dispatch_ps, report.execution_ps, report.completion_ps) > 0
    assert len(report.pes) == 128
    # the IO CPU alone takes 10 ns for each of 16 cubes
    assert report.skew_ps > 15 * 10_000


def test_a_synchronised_start_has_no_skew_and_costs_messages() -> None:
    reports = []
    for synchronised in (False, True):
        with context() as torch:
            tensor = torch.zeros(64, dp=COLUMNS)

            def touch(x: Any, tl: Any) -> None:
                tl.store(x, 1.0)

            pending = torch.launch(touch, LocalShard(tensor), synchronised_start=synchronised)
            reports.append(pending.report)
    skewed, together = reports
    assert skewed.skew_ps > 0 == together.skew_ps
    assert together.dispatch_ps > 2 * skewed.dispatch_ps


def test_programs_written_as_users_know_them_run() -> None:
    def gemm(a_ptr: Any, b_ptr: Any, out_ptr: Any, m: Any, k: Any, n: Any, tl: Any) -> None:
        a = tl.load(a_ptr, shape=(m, k), dtype="f16")
        here = tl.program_id(0)
        b = tl.load(b_ptr + here * k * n, shape=(k, n), dtype="f16")
        tl.store(out_ptr + here * m * n, tl.dot(a, b).to(tl.float16))

    def run(torch: RuntimeContext) -> tuple[Tensor, Tensor, Tensor]:
        a = torch.zeros((32, 64), dtype="f16", dp=DPPolicy(cube="replicate", num_cubes=1))
        b = torch.zeros((64, 128), dtype="f16", dp=COLUMNS)
        out = torch.zeros((32, 128), dtype="f16", dp=COLUMNS)
        rng = np.random.default_rng(0)
        for tensor in (a, b):
            values = rng.integers(-3, 4, tensor.shape).astype(np.float16)
            tensor.copy_(torch.from_numpy(values))
        torch.launch("qkv_gemm", gemm, a, b, out, 32, 64, LocalSize(b, 1))
        return a, b, out

    with context() as torch:
        a, b, out = run(torch)
        expected = a.numpy().astype(np.float64) @ b.numpy().astype(np.float64)
        assert (out.numpy() == expected).all()


def test_local_sizes_are_those_of_the_shard_also_where_they_are_uneven() -> None:
    with context() as torch:
        pes = torch.machine.grid.num_pes_per_cube
        rows = 3 * pes - 1
        tensor = torch.zeros((rows, 2), "i32", dp=DPPolicy(pe="row_wise", num_cubes=1))

        def fill(x: Any, size: Any, tl: Any) -> None:
            tl.store(x, size)

        torch.launch(fill, LocalShard(tensor), LocalSize(tensor, 0))
        sizes = [tensor.local(shard.home)[0, 0] for shard in tensor.shards]
    assert sizes == [3] * (pes - 1) + [2]


def test_without_a_grid_an_argument_starts_where_its_sip_does() -> None:
    with context("ahbm") as torch:
        policy = DPPolicy(sip="row_wise", num_cubes=1, num_pes=1)
        tensor = torch.zeros((2, 8), "i32", dp=policy)

        def fill(x: Any, tl: Any) -> None:
            tl.store(x, tl.program_id("sip") + 1)

        report = torch.launch(fill, tensor).report
        assert tensor.numpy()[:, 0].tolist() == [1, 2]
    assert report.grid == (1, 1, 2)


def test_on_names_pes_a_function_or_an_owner() -> None:
    with context() as torch:
        pes = list(torch.machine.grid.pes())
        out = torch.zeros((8, PAGE // 4), "i32", dp=DPPolicy(pe="row_wise", num_cubes=1))
        flat = torch.zeros(16, "i32", dp=ONE)
        torch.launch(note_place, flat, grid=(4,), on=[pes[2], pes[1]])
        assert flat.numpy()[:4].tolist() == [1, 0, 1, 0]  # places among those of the launch
        report = torch.launch(note_place, flat, grid=(2, 2), on=lambda i, j: pes[2 * j + i]).report
        assert flat.numpy()[:4].tolist() == [0, 1, 2, 3]
        assert report.pes == tuple(pes[:4])

        def rows(x: Any, width: Any, tl: Any) -> None:
            tl.store(x + tl.program_id(0) * width, tl.program_id("pe") + 1)

        torch.launch(rows, out, PAGE // 4, grid=(8,), on=out)
        owners = [out.placement.owner_of(row * PAGE).pe + 1 for row in range(8)]
        assert out.numpy()[:, 0].tolist() == owners


@pytest.mark.parametrize("on", [[PeCoord(7, 0, 0)], lambda _: PeCoord(0, 99, 0), lambda _: 3])
def test_a_place_that_is_not_there_is_refused(on: Any) -> None:
    torch = context()
    tensor = torch.zeros(16, "i32", dp=ONE)
    with pytest.raises(KernelError, match=r"PeCoord|PE of the machine"):
        torch.launch(note_place, tensor, grid=(1,), on=on)
    torch.launch(note_place, tensor, grid=(1,))


def test_a_grid_refuses_a_tensor_that_pes_do_not_see_as_a_whole() -> None:
    torch = context()
    tensor = torch.zeros((64, 64), dp=COLUMNS)
    before = len(torch.handles())
    with pytest.raises(KernelError, match=r"'t1'.*Interleave\(65536\).*launch without a grid"):
        torch.launch(note_place, tensor, grid=(4,))
    assert len(torch.handles()) == before


def test_copies_of_a_tensor_are_stored_into_by_one_pe() -> None:
    torch = context()
    tensor = torch.zeros(16, "i32", dp=DPPolicy(num_cubes=1))
    torch.launch(note_place, tensor, grid=(1,))
    with pytest.raises(KernelError, match=r"copies of tensor 't1'.*pe0.*pe1"):
        torch.launch(note_place, tensor, grid=(2,))


def test_without_a_grid_each_pe_stores_into_its_own_copy() -> None:
    with context("ahbm") as torch:  # of two SIPs, each has a copy
        tensor = torch.zeros((8, 16), "f32", dp=DPPolicy(pe="row_wise", num_cubes=1))

        def fill(x: Any, value: Any, tl: Any) -> None:
            tl.store(x + tl.arange(0, 16), tl.zeros((16,), tl.float32) + value)

        torch.launch(fill, LocalShard(tensor), 3.0)
        assert (tensor.numpy() == 3).all()

        def differ(x: Any, tl: Any) -> None:
            tl.store(x, tl.program_id("sip").to(tl.float32))

        torch.launch(differ, LocalShard(tensor))
        with pytest.raises(TensorError, match=r"sip1.*sip0"):
            tensor.numpy()


def test_launches_may_be_under_way_together() -> None:
    def alone(torch: RuntimeContext, pe: int) -> Tensor:
        return torch.zeros(
            (512, 512), "f32", dp=DPPolicy(num_pes=pe + 1, num_cubes=1, pe="row_wise")
        )

    def spin(x: Any, times: Any, tl: Any) -> None:
        offsets = tl.arange(0, 1024)
        block = tl.load(x + offsets)
        for _ in range(times):
            block = tl.exp(block)
        tl.store(x + offsets, block)

    one, two = context(), context()
    for torch in (one, two):
        tensor = alone(torch, 1)
        homes = [shard.home for shard in tensor.shards]
        start_ps = torch.now_ps
        if torch is one:
            for home in homes:
                torch.launch(spin, tensor, 500, grid=(1,), on=[home])
            apart_ps = torch.now_ps - start_ps
        else:
            pending = [
                torch.launch(spin, tensor, 500, grid=(1,), on=[home], wait=False) for home in homes
            ]
            assert not any(torch.is_completed(each) for each in pending)
            assert torch.now_ps == start_ps
            torch.wait_all()
            assert all(each.is_completed for each in pending)
            together_ps = torch.now_ps - start_ps
    assert together_ps < 0.7 * apart_ps


def test_a_wait_drives_time_to_its_own_end_and_no_further() -> None:
    def spin(x: Any, times: Any, tl: Any) -> None:
        block = tl.load(x + tl.arange(0, 64))
        for _ in range(times):
            block = tl.exp(block)
        tl.store(x + tl.arange(0, 64), block)

    torch = context()
    tensor = torch.zeros((2, PAGE // 4), "f32", dp=DPPolicy(num_pes=2, num_cubes=1, pe="row_wise"))
    first, second = (shard.home for shard in tensor.shards)
    long = torch.launch(spin, LocalShard(tensor), 5000, on=[first], wait=False)
    short = torch.launch(spin, LocalShard(tensor), 5, on=[second], wait=False)
    short.wait()
    assert short.is_completed
    assert not long.is_completed
    with pytest.raises(Exception, match="wait for it first"):
        _ = long.report
    assert long.wait().completed_ps > short.report.completed_ps


def test_residents_share_a_pe_and_hide_each_others_latency() -> None:
    def run(resident: int) -> tuple[LaunchReport, Any]:
        def chase(x: Any, tl: Any) -> None:
            base = x + tl.program_id(0) * 1024
            place = tl.load(base)
            for _ in range(8):
                place = tl.load(base + place)
            tl.store(base + 512, place)

        with context() as torch:
            tensor = torch.zeros((8, 1024), "i32", dp=ONE)
            links = np.zeros((8, 1024), np.int32)
            links[:, :64] = np.arange(1, 65)
            tensor.copy_(links)
            report = torch.launch(chase, tensor, grid=(8,), resident=resident).report
            return report, tensor.numpy()[:, 512].tolist()

    (one, values), (four, same) = run(1), run(4)
    assert values == same == [9] * 8
    assert four.execution_ps < 0.4 * one.execution_ps


def test_a_resident_program_has_its_part_of_the_memory_of_a_pe() -> None:
    def large(x: Any, size: Any) -> None:
        block = tl.load(x + tl.arange(0, size))
        tl.store(x + tl.arange(0, size), block + 1)

    tcm = parse_machine("ahbm-small").pe.tcm
    elements = 2**20
    assert tcm.capacity_bytes - tcm.reserved_bytes > 8 * elements > tcm.capacity_bytes // 4
    torch = context()
    tensor = torch.zeros(elements, "f32", dp=ONE, timed=False)
    torch.launch(large, tensor, elements, grid=(2,))
    with pytest.raises(KernelError, match="TCM"):
        torch.launch(large, tensor, elements, grid=(2,), resident=4)


def pass_on(x: Any, out: Any, tl: Any) -> None:
    """Each PE sends its block east and stores what comes from the west."""
    offsets = tl.arange(0, 64)
    tl.send("E", tl.load(x + offsets))
    tl.store(out + offsets, tl.recv("W", (64,), tl.float32))


def test_neighbours_are_installed_by_messages_before_the_start() -> None:
    with context() as torch:
        x, out = (torch.zeros((4, 64), "f32", dp=DPPolicy(pe="row_wise", num_cubes=1, num_pes=4))
                  for _ in range(2))  # fmt: skip
        x.copy_(np.arange(4, dtype=np.float32)[:, None] * np.ones(64, np.float32))
        pes = [shard.home for shard in x.shards]
        table = {pes[i]: {"E": pes[(i + 1) % 4], "W": pes[(i - 1) % 4]} for i in range(4)}
        args = LocalShard(x), LocalShard(out)
        requests = len(torch.handles())
        report = torch.launch(pass_on, *args, neighbours=table).report
        what = [handle.what for handle in torch.handles()[requests:]]
        assert out.numpy()[:, 0].tolist() == [3, 0, 1, 2]
        assert what == ["rings of 'pass_on'", "launch of 'pass_on'"]
        installed = torch.handles()[requests]
        assert installed.completed_ps is not None
        assert report.submitted_ps < installed.completed_ps < report.first_start_ps


def test_programs_may_stand_for_their_pes_among_neighbours() -> None:
    with context() as torch:
        x = torch.zeros((2, PAGE // 4), "f32", dp=DPPolicy(pe="row_wise", num_cubes=1, num_pes=2))
        out = torch.zeros((2, PAGE // 4), "f32", dp=DPPolicy(pe="row_wise", num_cubes=1, num_pes=2))
        x.copy_(np.array([[1], [2]], np.float32) * np.ones(PAGE // 4, np.float32))

        def swap(x: Any, out: Any, width: Any, tl: Any) -> None:
            row = tl.program_id(0) * width + tl.arange(0, 64)
            tl.send("E", tl.load(x + row))
            tl.store(out + row, tl.recv("E", (64,), tl.float32))

        table: dict[Any, dict[str, Any]] = {0: {"E": 1}, (1,): {"E": (0,)}}
        torch.launch(swap, x, out, PAGE // 4, grid=(2,), neighbours=table)
        assert out.numpy()[:, 0].tolist() == [2, 1]
        with pytest.raises(KernelError, match="the neighbour 9"):
            torch.launch(swap, x, out, PAGE // 4, grid=(2,), neighbours={0: {"E": 9}})


def test_a_program_that_never_gets_its_message_is_reported() -> None:
    torch = context()
    x = torch.zeros((2, 64), "f32", dp=DPPolicy(pe="row_wise", num_cubes=1, num_pes=2))
    pes = [shard.home for shard in x.shards]

    def listen(x: Any, tl: Any) -> None:
        tl.store(x + tl.arange(0, 64), tl.recv("E", (64,), tl.float32))

    with pytest.raises(DeadlockError, match="listen"):
        torch.launch(
            listen,
            LocalShard(x),
            neighbours={pes[0]: {"E": pes[1]}, pes[1]: {"E": pes[0]}},
        )


def test_wrong_arguments_are_refused_before_anything_is_sent() -> None:
    torch = context()
    x, y, out = triple(torch, 1024)
    freed = torch.zeros(4, dp=ONE)
    freed.free()
    before = len(torch.handles())
    cases: list[tuple[type[Exception], str, tuple[Any, ...], dict[str, Any]]] = [
        (KernelError, "missing a required argument: 'n'", (x, y, out), {"block": 64}),
        (KernelError, "unexpected keyword argument 'size'", (x, y, out, 4, 64), {"size": 1}),
        (KernelError, "not on the device", (x, y, np.zeros(4), 4), {"block": 64}),
        (KernelError, "an argument that a kernel can take", (x, y, out, object()), {"block": 64}),
        (TensorError, "freed", (x, y, freed, 4), {"block": 64}),
        (PlacementError, "axis 3", (x, y, out, LocalSize(x, 3)), {"block": 64}),
    ]
    for kind, words, args, kwargs in cases:
        with pytest.raises(kind, match=words):
            torch.launch(add, *args, grid=(1,), **kwargs)
    with pytest.raises(KernelError, match="a function of a program's ids, without a grid"):
        torch.launch(add, x, y, out, 4, 64, on=lambda _: PeCoord(0, 0, 0))
    with pytest.raises(KernelError, match="resident=0"):
        torch.launch(add, x, y, out, 4, 64, grid=(1,), resident=0)
    assert len(torch.handles()) == before


def test_numbers_of_numpy_and_names_are_arguments() -> None:
    with context() as torch:
        x, y, out = triple(torch, 1000)
        torch.launch(add, x, y=y, out=out, n=np.int32(1000), block=1024, grid=(1,))
        assert (out.numpy() == 3).all()


def test_a_kernel_that_changed_is_the_new_one() -> None:
    with context() as torch:
        x = torch.zeros(64, "i32", dp=ONE)

        space: dict[str, Any] = {}
        exec("def kernel(x, tl): tl.store(x, 1)", space)  # as a session defines it
        torch.launch("k", space["kernel"], x)
        exec("def kernel(x, value, tl): tl.store(x, value)", space)
        torch.launch("k", space["kernel"], x, 5)
        assert x[0] == 5


def test_a_launch_with_nothing_to_do_is_over_at_once() -> None:
    with context() as torch:
        x, y, out = triple(torch, 64)
        before_ps = torch.now_ps
        for arguments, grid in (((x, y, out, 64, 64), (0,)), ((x, y, out, 64, 64), (3, 0))):
            report = torch.launch(add, *arguments, grid=grid).report
            assert (report.num_programs, report.latency_ps, report.pes) == (0, 0, ())
        empty = torch.empty((0, 8), dp=ONE)
        assert torch.launch(note_place, empty).report.num_programs == 0
        assert len(torch.reports) == 3
        assert before_ps <= torch.now_ps


def test_a_pe_that_has_no_part_of_a_tensor_may_not_touch_it() -> None:
    torch = context()
    x = torch.zeros(64, dp=COLUMNS)
    y = torch.zeros(64, dp=DPPolicy(num_pes=2, num_cubes=1), name="y")

    def touch(x: Any, y: Any, tl: Any) -> None:
        tl.store(x + tl.program_id(0) * 16, tl.load(y))

    with pytest.raises(PageFaultError, match=r"y\[0:1\] of .* on sip0\.cube0\.pe2, which has no"):
        torch.launch(touch, x, y)


def test_a_tensor_that_a_launch_uses_stays_until_it_ends() -> None:
    torch = context()
    out = torch.zeros(64, "f32", dp=ONE)

    def copy(x: Any, out: Any, tl: Any) -> None:
        tl.store(out + tl.arange(0, 64), tl.load(x + tl.arange(0, 64)))

    torch.launch(copy, torch.full(64, 3, "f32", dp=ONE), out, wait=False)
    torch.full(64, 9, "f32", dp=ONE)  # would take the place of the first
    assert (out.numpy() == 3).all()
