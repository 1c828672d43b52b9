"""Launch messages: which kernel runs where, with which arguments, and what the trace tells."""

from typing import Any

import numpy as np
import pytest

from tests.interop.kernbench.engines import (
    HOME,
    carry_out,
    engine,
    hbm,
    launch,
    machine,
    map_,
    read,
    run_kernel,
    write,
)
from tilewright.errors import KernelError, LaunchEndedError, RequestError
from tilewright.host import PeCoord, RuntimeContext
from tilewright.interop.kernbench.engine import GraphEngine
from tilewright.interop.kernbench.message import (
    KernelLaunchMsg,
    KernelRef,
    ScalarArg,
    TensorArg,
    TensorArgShard,
)
from tilewright.interop.kernbench.names import ProgramRegistry, entered_registry
from tilewright.interop.kernbench.topology import resolve_topology
from tilewright.machine import build_machine, parse_machine

VA = 0x8_0000_0000


def shard(pe: PeCoord = HOME, offset: int = 0, nbytes: int = 64) -> TensorArgShard:
    return TensorArgShard(pe.sip, pe.cube, pe.pe, hbm(offset, pe), nbytes, 0)


def idle(tl: Any) -> None:
    tl.program_id(0)


def idle_with(x: int, tl: Any) -> int:
    return x + int(tl.program_id(0))


@pytest.mark.parametrize("sanitize", [False, True])
def test_a_kernel_adds_what_messages_have_written(*, sanitize: bool) -> None:
    on = engine(sanitize=sanitize)
    a, b = (np.arange(32, dtype=np.float16) * factor for factor in (1, 3))
    for number, data in enumerate((a, b)):
        message = write(hbm(number * 64), 64, src_kind="host_buffer", host_buffer=data)
        carry_out(on, message)
    carry_out(on, map_(VA, hbm(), 192, target_cubes=0, target_pe=1))

    def add(a_ptr: int, n: int, scale: float, tl: Any, dtype: str = "f16") -> None:
        x = tl.load(a_ptr, (n,), dtype)
        y = tl.load(a_ptr + 2 * n, (n,), dtype)
        tl.store(a_ptr + 4 * n, x + y * scale)

    arguments = (TensorArg((shard(),), VA), ScalarArg("i32", 32), ScalarArg("f32", 2.0))
    run_kernel(on, add, *arguments, target_cubes=(0,), target_pe=1)
    found = np.frombuffer(carry_out(on, read(hbm(128), 64))[1]["data"], np.float16)
    assert found.tolist() == (a + 2 * b).tolist()
    assert not sanitize or len(on.host.findings) == 0


@pytest.mark.parametrize(
    ("targets", "wanted"),
    [
        ({"target_cubes": (0, 2), "target_pe": (1, 3)}, [(1, 0), (3, 0), (1, 2), (3, 2)]),
        ({"target_cubes": 1, "target_pe": "all"}, [(pe, 1) for pe in range(4)]),
        ({}, [(pe, cube) for cube in range(4) for pe in range(4)]),
    ],
)
def test_a_program_runs_on_each_target_pe_of_each_target_cube(
    targets: dict[str, Any], wanted: list[tuple[int, int]]
) -> None:
    on, seen = engine(), []

    def kernel(value: int, tl: Any) -> None:
        seen.append((tl.program_id(0), tl.program_id(1), value))

    trace = run_kernel(on, kernel, ScalarArg("i32", 2**40), **targets)
    assert sorted(seen) == sorted((pe, cube, 2**40) for pe, cube in wanted)
    assert trace["num_programs"] == len(wanted)


def test_the_sip_is_that_of_the_shards_or_named() -> None:
    on = GraphEngine.of_host(RuntimeContext(build_machine(parse_machine("ahbm"))))
    ran: list[int] = []
    on.kernels["kernel"] = idle_with

    def sip_of(*args: Any, **fields: Any) -> int:
        message = launch("kernel", *args, target_cubes=0, target_pe=0, **fields)
        _, trace = carry_out(on, message)
        ran.append(on.host.reports[-1].pes[0].sip)
        return int(trace["sip"])

    elsewhere = TensorArg((TensorArgShard(1, 0, 0, 0, 64, 0),), VA)
    assert [sip_of(ScalarArg("i32", 1)), sip_of(elsewhere), sip_of(elsewhere, target_sip=0)] == [
        0,
        1,
        0,
    ]
    assert ran == [0, 1, 0]
    both = TensorArg((shard(), *elsewhere.shards), VA)
    with pytest.raises(RequestError, match="shards on the SIPs 0, 1, expected one SIP"):
        sip_of(both)


def test_the_parts_of_a_launch_add_up_and_the_slowest_pe_is_told() -> None:
    on = engine()

    def kernel(loops: int, tl: Any) -> None:
        x = tl.full((64, 64), 1.0, "f32")
        for _ in range(loops * (1 + tl.program_id(0))):
            x = x + x

    short = run_kernel(on, kernel, ScalarArg("i32", 1), target_cubes=0, target_pe=(0, 1))
    long = run_kernel(on, kernel, ScalarArg("i32", 50), target_cubes=0, target_pe=(0, 1))
    only = run_kernel(on, kernel, ScalarArg("i32", 50), target_cubes=0, target_pe=0)
    for trace in (short, long, only):
        parts = [trace[part] for part in ("dispatch_ns", "execution_ns", "completion_ns")]
        assert sum(parts) == pytest.approx(trace["total_ns"], abs=1e-6)
        assert min(parts) > 0
        assert trace["pe_exec_ns"] <= trace["execution_ns"]
    assert long["pe_exec_ns"] > 10 * short["pe_exec_ns"]
    assert long["pe_exec_ns"] == pytest.approx(2 * only["pe_exec_ns"], rel=0.05)


def test_no_program_begins_before_the_start_that_is_asked_for() -> None:
    on = engine()
    starts: list[int] = []

    def kernel(tl: Any) -> None:
        starts.append(on.host.now_ps + tl.program_id(0) * 0)

    trace = run_kernel(on, kernel, target_start_ns=50_000.5)
    assert starts == [50_000_500] * 16
    assert trace["dispatch_ns"] == 50_000.5
    late = run_kernel(on, kernel, target_cubes=0, target_start_ns=1.0)  # that time has passed
    assert late["dispatch_ns"] < 1_000


def test_launches_under_way_run_side_by_side() -> None:
    on = engine()

    def kernel(tl: Any) -> None:
        x = tl.full((64, 64), 1.0, "f32")
        for _ in range(50):
            x = x + x

    alone = run_kernel(on, kernel, target_cubes=0, target_pe=0)["total_ns"]
    handles = [on.submit(launch("kernel", target_cubes=0, target_pe=pe)) for pe in (0, 1)]
    for handle in handles:
        on.wait(handle)
    traces = [on.get_completion(handle)[1] for handle in handles]
    assert traces[0]["submitted_ns"] == traces[1]["submitted_ns"]
    assert max(trace["total_ns"] for trace in traces) < 1.5 * alone


def test_an_error_in_a_kernel_is_raised_by_wait_and_the_engine_goes_on() -> None:
    on = engine()

    def wrong(tl: Any) -> None:
        raise ZeroDivisionError(f"in the kernel on PE {tl.program_id(0)}")

    on.kernels |= {"wrong": wrong, "right": idle}
    handle = on.submit(launch("wrong", target_cubes=0, target_pe=0))
    with pytest.raises(ZeroDivisionError, match="in the kernel"):
        on.wait(handle)
    completion, trace = on.get_completion(handle)
    assert not completion.ok
    assert "pe_exec_ns" not in trace
    on.wait(handle)  # raised once
    assert on.get_completion(handle)[0] == completion
    assert carry_out(on, launch("right"))[0].ok


def test_a_launch_that_anothers_error_has_ended_says_so_once() -> None:
    on = engine()

    def wrong(tl: Any) -> None:
        raise ZeroDivisionError(f"on PE {tl.program_id(0)}")

    on.kernels |= {"wrong": wrong, "right": idle}
    first = on.submit(launch("wrong", target_cubes=0, target_pe=0))
    second = on.submit(launch("right", target_cubes=1, target_pe=0, target_start_ns=1e6))
    with pytest.raises(ZeroDivisionError):
        on.wait(second)
    with pytest.raises(LaunchEndedError, match="launch of 'right'"):
        on.wait(second)
    for handle in (first, second):
        on.wait(handle)
        assert on.get_completion(handle)[0].error_code == "LaunchEndedError"


def test_the_last_registration_of_a_name_runs() -> None:
    on, ran = engine(), []

    def kernel_of_number(number: int) -> Any:
        def kernel(tl: Any) -> None:
            ran.append((number, tl.program_id(0)))

        return kernel

    for number in (1, 2):
        on.kernels["kernel"] = kernel_of_number(number)
    carry_out(on, launch("kernel", target_cubes=0, target_pe=0))
    assert ran == [(2, 0)]


def test_engines_of_a_program_share_its_kernels_and_are_built_as_it_says() -> None:
    hosts: list[RuntimeContext] = []

    def build(_: Any) -> RuntimeContext:
        hosts.append(RuntimeContext(machine(), sanitize=True))
        return hosts[-1]

    registry = ProgramRegistry(build)
    with entered_registry(registry):
        on = GraphEngine(resolve_topology({}))
    assert on.host is hosts[0]
    registry.register_kernel("named", idle)
    assert carry_out(on, launch("named", target_cubes=0))[0].ok


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (launch("adder"), r"kernel_ref: found no kernel 'adder'.*did you mean 'add'\?"),
        (launch("zzz"), "register it"),
        (
            launch("add", kernel_ref=KernelRef("add", "deployed", 4096)),
            "kind='deployed', expected kind='builtin'",
        ),
        (launch("add", kernel_ref="add"), r"kernel_ref: found 'add', expected KernelRef"),
        (launch("add", 8), r"args\[0\]: found 8, expected TensorArg or ScalarArg"),
        (launch("add", ScalarArg("i64", 8)), r"args\[0\]: found dtype='i64'"),
        (launch("add", ScalarArg("i32", 0.5)), "i32 0.5, expected an int"),
        (launch("add", ScalarArg("f32", "1")), "f32 '1', expected a number"),  # type: ignore[arg-type]
        (launch("add", TensorArg((), 0)), "va_base=0, expected a virtual address"),
        (launch("add", target_cubes=4), "target_cubes: found 4"),
        (launch("add", target_pe=(0, 4)), r"target_pe: found \(0, 4\)"),
        (launch("add", target_sip=7), "target_sip: found 7"),
        (launch("add", target_start_ns=-1.0), "target_start_ns: found -1.0"),
        (launch("add", target_start_ns=float("nan")), "target_start_ns: found nan"),
    ],
)
def test_a_wrong_launch_is_refused_by_its_field_and_nothing_is_sent(
    message: KernelLaunchMsg, words: str
) -> None:
    on = engine()
    on.kernels["add"] = idle_with
    with pytest.raises(RequestError, match=words):
        on.submit(message)
    assert on.host.handles() == []


def test_arguments_that_do_not_fit_the_kernel_are_refused() -> None:
    on = engine()
    on.kernels["add"] = idle_with
    with pytest.raises(KernelError, match="missing a required argument"):
        on.submit(launch("add"))
    assert on.host.handles() == []
