"""What a watched program does: the same as any other, seen from beside."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from tests.kinds import needs_both_engines
from tests.sanitizer.field import BLOCK, DEALT, RING, machine, tensor
from tests.sanitizer.queue import signal_without_waiting
from tests.sanitizer.race import shared_sum
from tilewright import language as tl
from tilewright.errors import AddressError, PageFaultError, RequestError, SanitizerError
from tilewright.executor.neighbour import Neighbours
from tilewright.host import RuntimeContext
from tilewright.memory.sanitizer.finding import FindingKind
from tilewright.programs import PROGRAMS
from tilewright.runtime.launch.bind import LaunchOptions
from tilewright.runtime.message import KernelLaunchMsg


def context(**options: Any) -> RuntimeContext:
    return RuntimeContext(machine(), sanitize=True, **options)


def kinds(torch: RuntimeContext) -> list[FindingKind]:
    return [finding.kind for finding in torch.findings]


def store_all(out: Any) -> None:
    tl.store(out + tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.float32))


def test_leaving_a_context_raises_what_was_found() -> None:
    with pytest.raises(SanitizerError, match="1 race") as caught, context() as torch:
        torch.launch(store_all, tensor(torch, "out", 4 * BLOCK), grid=(4,))
    assert len(caught.value.findings) == 1


def test_leaving_a_context_in_which_nothing_is_wrong_raises_nothing() -> None:
    with context() as torch:
        torch.launch(store_all, tensor(torch, "out", BLOCK), grid=(1,))


def race_and_fail(torch: RuntimeContext) -> None:
    with torch:
        torch.launch(store_all, tensor(torch, "out", 4 * BLOCK), grid=(4,))
        raise ZeroDivisionError


def test_an_error_of_the_program_itself_is_not_hidden_by_findings() -> None:
    torch = context()
    with pytest.raises(ZeroDivisionError):
        race_and_fail(torch)
    assert kinds(torch) == [FindingKind.RACE]


def test_a_context_without_a_sanitizer_has_no_findings_to_ask_for() -> None:
    with pytest.raises(RequestError, match="sanitize=True"):
        _ = RuntimeContext(machine()).findings


def test_a_page_fault_names_the_address_itself_and_carries_the_finding() -> None:
    def kernel(x: Any) -> None:
        tl.load(x + 2**20 + tl.arange(0, 4))

    torch = context()
    x = tensor(torch, "x", BLOCK, 1.0)
    with pytest.raises(PageFaultError) as caught:
        torch.launch(kernel, x, grid=(1,))
    assert caught.value.address == x.address + 4 * 2**20
    (note,) = caught.value.__notes__
    assert note == str(next(iter(torch.findings)))
    assert "out of bounds" in note


def test_programs_of_one_pe_come_one_after_the_other() -> None:
    torch = context()
    torch.launch(store_all, tensor(torch, "out", BLOCK), grid=(4,))
    assert not kinds(torch)


def test_resident_programs_of_one_pe_do_not() -> None:
    torch = context()
    torch.launch(store_all, tensor(torch, "out", BLOCK), grid=(4,), resident=2)
    assert kinds(torch) == [FindingKind.RACE]


def test_atomic_loads_and_stores_meet_atomics_at_any_time() -> None:
    def kernel(flag: Any, out: Any) -> None:
        if tl.program_id(0) == 0:
            tl.atomic_store(flag, 1.0)
        elif tl.program_id(0) == 1:
            while tl.atomic_load(flag) == 0.0:
                pass
        else:
            tl.atomic_add(flag, 1.0)
        tl.store(out + tl.program_id(0), 1.0)

    torch = context()
    flag, out = tensor(torch, "flag", 4 * BLOCK, 0.0), tensor(torch, "out", 4 * BLOCK)
    torch.launch(kernel, flag, out, grid=(3,))
    assert not kinds(torch)


@pytest.mark.parametrize(
    ("sem", "waits", "expected"),
    [
        (None, False, []),
        ("release", False, []),
        ("relaxed", True, []),
        ("relaxed", False, [FindingKind.RACE]),
        ("acquire", False, [FindingKind.RACE]),
    ],
)
def test_an_atomic_store_hands_on_what_is_complete_before_it(
    sem: str | None, waits: bool, expected: list[FindingKind]
) -> None:
    def kernel(data: Any, flag: Any, out: Any) -> None:
        places = tl.arange(0, BLOCK)
        if tl.program_id(0) == 0:
            tl.store(data + places, tl.zeros((BLOCK,), tl.float32))
            if waits:
                float(tl.sum(tl.load(data + places), 0))
            tl.atomic_store(flag, 1.0, sem=sem)
        else:
            while tl.atomic_load(flag) == 0.0:
                pass
            tl.store(out + places, tl.load(data + places))

    torch = context()
    data, out = tensor(torch, "data", 2 * BLOCK, 1.0), tensor(torch, "out", 2 * BLOCK)
    torch.launch(kernel, data, tensor(torch, "flag", 2 * BLOCK, 0.0), out, grid=(2,))
    assert kinds(torch) == expected


@pytest.mark.parametrize(("beyond", "expected"), [(0, []), (2, [FindingKind.OUT_OF_BOUNDS])])
def test_halves_of_bytes_keep_their_tensor(beyond: int, expected: list[FindingKind]) -> None:
    def kernel(x: Any) -> None:
        places = beyond + tl.arange(0, 64)
        tl.store(x + places, tl.zeros((64,), tl.int4))

    torch = context()
    x = torch.empty(64, "i4", dp=DEALT, name="x")
    with pytest.raises(AddressError) if expected else nullcontext():
        torch.launch(kernel, x, grid=(1,))
    assert kinds(torch) == expected


def test_a_finding_on_a_matrix_names_row_and_column() -> None:
    def kernel(x: Any) -> None:
        row = tl.arange(0, 64)
        tl.store(x + 5 * 64 + row, tl.zeros((64,), tl.float32), mask=row >= 7)

    torch = context()
    x = torch.empty((64, 64), "f32", dp=DEALT, name="x")
    torch.launch(kernel, x, grid=(2,))
    (race,) = torch.findings
    assert (race.element, race.num_bytes) == ("x[5, 7]", 57 * 4)


def test_a_message_of_one_launch_is_received_by_the_next() -> None:
    """Over rings that are installed once: what was sent orders what comes after the receive."""

    def sends(data: Any) -> None:
        places = tl.arange(0, 64)
        if tl.program_id(0) == 0:
            tl.store(data + places, tl.zeros((64,), tl.float32))
            tl.send("E", tl.load(data + places))

    def receives(data: Any) -> None:
        if tl.program_id(0) == 1:
            tl.recv("W", (64,), tl.float32)
            tl.load(data + tl.arange(0, 64))

    torch = context()
    data = tensor(torch, "data", 4 * BLOCK, 1.0)
    places = dict(enumerate(list(torch.machine.grid.pes())[:4]))
    table = {
        places[place]: {name: places[peer] for name, peer in directions.items()}
        for place, directions in RING.items()
    }
    post = torch.driver.launcher.install(Neighbours(table))
    options = LaunchOptions(grid=(4,), neighbours=post)
    for kernel in (sends, receives):
        torch.submit(KernelLaunchMsg(kernel, (data,), options=options))
    torch.wait_all()
    assert not kinds(torch)


@pytest.mark.parametrize("name", ["gemm_single_pe", "qkv_gemm", "va_offset_verify"])
def test_ready_programs_have_no_findings_and_the_same_times(name: str) -> None:
    times = []
    for sanitize in (False, True):
        torch = RuntimeContext("ahbm", device="sip:0", sanitize=sanitize)
        PROGRAMS[name].run(torch)
        torch.wait_all()
        times.append(torch.now_ps)
    assert times[0] == times[1]
    assert not kinds(torch)


@needs_both_engines
@pytest.mark.parametrize("mistake", [shared_sum, signal_without_waiting])
def test_both_engines_lead_to_the_same_findings(mistake: Any) -> None:
    texts = []
    for engine in ("reference", "native"):
        torch = context(engine=engine)
        mistake(torch, True)
        texts.append(torch.findings.text)
    assert texts[0] == texts[1]


def test_values_are_the_same_as_without_a_sanitizer() -> None:
    def kernel(x: Any, out: Any) -> None:
        places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        picked = tl.load(x + (places * 7) % (4 * BLOCK))
        tl.store(out + places, tl.cumsum(picked, 0))

    found = []
    values = np.random.default_rng(0).normal(size=4 * BLOCK).astype(np.float32)
    for sanitize in (False, True):
        torch = RuntimeContext(machine(), sanitize=sanitize)
        out = tensor(torch, "out", 4 * BLOCK)
        torch.launch(kernel, tensor(torch, "x", 4 * BLOCK, values), out, grid=(4,))
        found.append(out.numpy())
    np.testing.assert_array_equal(found[0], found[1])
