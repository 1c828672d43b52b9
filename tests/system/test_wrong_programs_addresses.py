"""Programs that touch bytes which their PE does not have: each is refused, and says what to write.

Without a sanitizer; with one the same error comes with the finding.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import ENGINES, every_engine, needs_both_engines
from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.errors import AddressError, PageFaultError
from tilewright.host import DPPolicy, Interleave, LocalShard, RuntimeContext, Tensor
from tilewright.language.dtype import dtype_of
from tilewright.machine import build_machine, parse_machine
from tilewright.machine.coords import PeCoord
from tilewright.runtime.launch.bind import PerPe
from tilewright.runtime.workspace import Workspace
from tilewright.validation.address.access import MISTAKES, RIGHT, WAYS, run_way
from tilewright.validation.address.rules import PAGE_BYTES, WORDS, Case, probe_case, small_machine

MACHINE = build_machine(parse_machine("ahbm-small"))
ROWS = DPPolicy(cube="row_wise", num_sips=1, num_cubes=4, num_pes=1)
HERE = "test_wrong_programs_addresses.py"


def context(kind: EngineKind, *, sanitize: bool = False) -> RuntimeContext:
    return RuntimeContext(MACHINE, engine=kind, sanitize=sanitize)


def matrix(torch: RuntimeContext) -> Tensor:
    """Sixteen rows in each of four cubes, all in one page."""
    return torch.zeros((64, 64), "f16", dp=ROWS, name="a")


def add_one(a: Any, m: int, n: int) -> None:
    tl.store(a, tl.load(a, shape=(m, n)) + 1.0)


@every_engine
@pytest.mark.parametrize("sanitize", [False, True])
def test_the_start_of_a_sip_is_not_the_start_of_every_shard(
    kind: EngineKind, sanitize: bool
) -> None:
    torch = context(kind, sanitize=sanitize)
    with pytest.raises(AddressError) as caught:
        torch.launch("k", add_one, matrix(torch), 16, 64)
    error = caught.value
    assert f"{HERE}:" in error.where
    assert " in add_one, program (0, 1, 0) of add_one" in error.where
    assert "kernel 'add_one' on sip0.cube1.pe0" in error.where
    assert error.found == (
        "an access to a[0:16, 0:64] of tensor a (fp16[64, 64]) on sip0.cube1.pe0, "
        "which has a[16:32, 0:64]"
    )
    assert error.expected == "elements of the PE's own shard"
    assert error.fix == (
        "pass LocalShard of 'a' for the start of the PE's own shard, or place it in whole pages, "
        "as by Interleave, and launch with grid="
    )
    assert len(getattr(error, "__notes__", ())) == sanitize
    assert not sanitize or len(torch.findings) == 1


@every_engine
def test_the_two_repairs_that_the_error_names_are_right(kind: EngineKind) -> None:
    torch = context(kind)
    a = matrix(torch)
    torch.launch(add_one, LocalShard(a), 16, 64)
    assert (a.numpy() == 1).all()
    in_pages = DPPolicy(cube=Interleave(65_536), num_sips=1, num_cubes=4, num_pes=1)
    b = torch.zeros((64, 64), "f16", dp=in_pages)

    def add_one_by_grid(b: Any) -> None:
        add_one(b + tl.program_id(0) * 16 * 64, 16, 64)

    torch.launch(add_one_by_grid, b, grid=(4,))
    assert (b.numpy() == 1).all()


@every_engine
@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_access_refuses_every_mistake(
    way: str, mistake: str, kind: EngineKind
) -> None:
    machine = small_machine(1024)
    with pytest.raises(AddressError, match=r"access\.py:\d+ in .* kernel 'kernel' on sip0"):
        run_way(way, MISTAKES[mistake], machine, kind)


@every_engine
@pytest.mark.parametrize("right", RIGHT)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_access_is_right_inside_what_the_pe_has(
    way: str, right: Any, kind: EngineKind
) -> None:
    assert run_way(way, right, small_machine(1024), kind)[0]


@needs_both_engines
@pytest.mark.parametrize("way", WAYS)
def test_with_whole_pages_mapped_nobody_would_notice(way: str) -> None:
    """What the oracle of `validate` would find if bytes were not mapped: wrong values, no error."""
    foreign = MISTAKES["another PE's shard"]
    is_right, _ = run_way(way, foreign, small_machine(1024), EngineKind.NATIVE, by_pages=True)
    assert not is_right


def beyond_the_end(torch: RuntimeContext) -> None:
    x = torch.zeros(100, "f32", dp=DPPolicy(num_sips=1, num_cubes=1, num_pes=1), name="x")
    torch.launch(lambda x: tl.store(x + tl.arange(0, 128), 1.0), x)


def beyond_a_grid(torch: RuntimeContext) -> None:
    x = torch.zeros((3, 16_384), "f32", dp=DPPolicy(pe=Interleave(65_536), num_cubes=1), name="x")
    torch.launch(lambda x: tl.load(x + tl.program_id(0) * 16_384), x, grid=(4,))


def behind_the_last_page(torch: RuntimeContext) -> None:
    """Exactly a page: the next byte was another tensor's."""
    dp = DPPolicy(num_sips=1, num_cubes=1, num_pes=1)
    x, behind = (torch.zeros(16_384, "f32", dp=dp, name=name) for name in ("x", "behind"))
    torch.launch(lambda x, _: tl.load(x + 16_384), x, behind)


def into_no_tensor(torch: RuntimeContext) -> None:
    x = torch.zeros(4, "f32", dp=DPPolicy(num_sips=1, num_cubes=1, num_pes=1), name="x")
    torch.launch(lambda x: tl.load(int(x) + 2**30, shape=(4,), dtype=tl.float32), x)


def before_all_tensors(torch: RuntimeContext) -> None:
    x = torch.zeros(4, "f32", dp=DPPolicy(num_sips=1, num_cubes=1, num_pes=1), name="x")
    torch.launch(lambda _: tl.load(64, shape=(4,), dtype=tl.float32), x)


def where_the_tensor_is_not(torch: RuntimeContext) -> None:
    x = torch.zeros(4, "f32", dp=DPPolicy(num_sips=1, num_cubes=1, num_pes=1), name="x")
    torch.launch(lambda x: tl.load(x), x, grid=(1,), on=[PeCoord(0, 3, 2)])


def other_columns(torch: RuntimeContext) -> None:
    """A row of the whole matrix, of which each PE has some columns."""
    dp = DPPolicy(pe="column_wise", num_sips=1, num_cubes=1, num_pes=2)
    x = torch.zeros((4, 6), "f32", dp=dp, name="x")
    torch.launch(lambda x: tl.load(x, shape=(4, 6)), LocalShard(x))


OUTSIDE: list[tuple[Callable[[RuntimeContext], None], type[AddressError], str]] = [
    (
        beyond_the_end,
        AddressError,
        (
            "is 0 bytes behind the end of tensor x (fp32[100]), which has 400 bytes; "
            "the others are x[0:100]"
        ),
    ),
    (beyond_a_grid, PageFaultError, "is 0 bytes behind the end of tensor x (fp32[3, 16384])"),
    (behind_the_last_page, PageFaultError, "is 0 bytes behind the end of tensor x (fp32[16384])"),
    (into_no_tensor, PageFaultError, f"is {2**30 - 16} bytes behind the end of tensor x"),
    (before_all_tensors, PageFaultError, "of which 0x40 is before all tensors"),
    (
        where_the_tensor_is_not,
        PageFaultError,
        "x[0:1] of tensor x (fp32[4]) on sip0.cube3.pe2, which has nothing of it",
    ),
    (
        other_columns,
        AddressError,
        (
            "x[0:4, 0:3], x[0:4, 3:6] of tensor x (fp32[4, 6]) on sip0.cube0.pe0, "
            "which has x[0:4, 0:3]"
        ),
    ),
]


@every_engine
@pytest.mark.parametrize(("program", "error", "words"), OUTSIDE)
def test_an_access_outside_says_which_bytes_there_are(
    program: Callable[[RuntimeContext], None],
    error: type[AddressError],
    words: str,
    kind: EngineKind,
) -> None:
    with pytest.raises(error) as caught:
        program(context(kind))
    assert words in caught.value.found
    assert type(caught.value) is error
    assert f"{HERE}:" in caught.value.where


@every_engine
def test_a_workspace_refuses_bytes_behind_its_arrays(kind: EngineKind) -> None:
    workspace = Workspace(MACHINE, kind)
    pes = list(MACHINE.grid.pes())[:1]
    x = workspace.place(np.zeros(10, np.float32), pes)
    with pytest.raises(AddressError, match=r"behind the end of tensor array0 \(fp32\[10\]\)"):
        workspace.launch(lambda x: tl.load(x + tl.arange(0, 16)), x, grid=(1,), pes=pes)


@every_engine
def test_a_kernel_that_catches_the_error_goes_on(kind: EngineKind) -> None:
    """Nothing of a refused access stays behind: neither a byte nor a page in the TLB."""
    dp = DPPolicy(num_sips=1, num_cubes=1, num_pes=1)
    times = []
    for tries in (0, 3):
        torch = context(kind)
        x = torch.zeros(8, "f32", dp=dp)

        def kernel(x: Any, tries: int = tries) -> None:
            for _ in range(tries):
                with pytest.raises(AddressError):
                    tl.store(x + tl.arange(0, 16), 9.0)
            tl.store(x + tl.arange(0, 8), 1.0)

        times.append(torch.launch(kernel, x).report.latency_ps)
        assert x.tolist() == [1.0] * 8
    assert times[0] == times[1]


# -- random placements -----------------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 200 if rank == 1 else 14)) for _ in range(rank))
    words = tuple(draw(st.sampled_from(WORDS)) for _ in range(3))
    counts = tuple(draw(st.integers(1, 2)) for _ in range(3))
    dtype = draw(st.sampled_from(["i4", "i8", "f16", "f32"]))
    return Case(shape, dtype, words, counts, draw(st.booleans()))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ENGINES)
@settings(max_examples=10)
@given(case=cases(), seed=st.integers(0, 99))
def test_a_pe_can_load_the_bytes_that_its_placement_gives_it_and_no_others(
    kind: EngineKind, case: Case, seed: int
) -> None:
    for may, could in (probe := probe_case(case, kind, seed)).pairs:
        assert set(could) == may
        assert all(probe.expected.image[offset] == value for offset, value in could.items())


@pytest.mark.parametrize("kind", ENGINES)
@settings(max_examples=20)
@given(case=cases(), data=st.data())
def test_a_box_of_bytes_is_loaded_right_or_refused(
    kind: EngineKind, case: Case, data: st.DataObject
) -> None:
    """Rows at any distance: bytes between them need not be there."""
    torch = RuntimeContext(small_machine(), engine=kind)
    values = np.arange(np.prod(case.shape)).reshape(case.shape) % 13 - 6
    tensor = torch.empty(case.shape, case.dtype, dp=case.policy, name="x")
    stored = values.astype(dtype_of(case.dtype).storage)
    expected = case.expect(stored)
    tensor.copy_(stored, timed=False)
    places = sorted(expected.visible)
    start = data.draw(st.integers(-2, len(expected.image)))
    pitch = data.draw(st.integers(1, 2 * PAGE_BYTES))
    rows, columns = data.draw(st.sampled_from([(1, 4), (2, 8), (4, 2), (8, 16)]))
    loaded: dict[int, np.ndarray[Any, Any] | None] = {}

    def kernel(base: Any, number: Any) -> None:
        box = tl.arange(0, rows)[:, None] * pitch + tl.arange(0, columns)[None, :]
        pointers = tl.cast(base + start, tl.pointer_type(tl.uint8)) + box
        try:
            block = tl.load(pointers)
        except AddressError:
            loaded[number] = None
            return
        loaded[number] = np.array(block.program.elements(block))

    numbers = PerPe({place: number for number, place in enumerate(places)})
    torch.launch(kernel, tensor.address, numbers, on=places)
    wanted = start + np.arange(rows)[:, None] * pitch + np.arange(columns)[None, :]
    for number, place in enumerate(places):
        if set(wanted.reshape(-1).tolist()) <= expected.visible[place]:
            image = np.frombuffer(expected.image, np.uint8)
            np.testing.assert_array_equal(loaded[number], image[wanted])
        else:
            assert loaded[number] is None
