"""Pointers as integers and back, on both engines, with and without a sanitizer."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import ENGINES, every_engine
from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.errors import KernelError, PageFaultError
from tilewright.language.dtype import int4
from tilewright.language.value import Index, Pointers
from tilewright.memory.sanitizer.sanitizer import Sanitizer
from tilewright.runtime.workspace import Workspace

VALUES = np.arange(32, dtype=np.float32)


def run(kernel: Any, kind: EngineKind, *more: Any) -> list[float]:
    """What a kernel writes into an array of 32, given the array of all numbers below 32."""
    bed = Bed(engine=kind)
    x, out = bed.place(VALUES), bed.place(np.zeros(32, np.float32))
    bed.launch(kernel, x, out, *[bed.place(each) for each in more])
    found: list[float] = bed.read(out).tolist()
    return found


@every_engine
def test_a_pointer_is_a_number_of_bytes(kind: EngineKind) -> None:
    bed = Bed(engine=kind)
    x = bed.place(VALUES)
    seen: list[Any] = []

    def kernel(x: Any) -> None:
        seen.extend((int(x), int(x + 3), hex(x), bool(x), int(x + tl.load(x + 2).to(tl.int32))))

    bed.launch(kernel, x)
    assert seen == [x.address, x.address + 12, hex(x.address), True, x.address + 8]


@every_engine
def test_an_integer_address_with_a_dtype_is_loaded_stored_and_named(kind: EngineKind) -> None:
    def kernel(x: Any, out: Any) -> None:
        tl.store(int(out), tl.load(int(x) + 16, shape=(4,), dtype=tl.float32))
        tl.store(int(out) + 16, tl.load(int(x) + 4, dtype=tl.float32))
        tile = tl.ref(int(x) + 64, (2, 4), tl.float32)
        tl.store(tl.ref(int(out) + 32, (2, 4), tl.float32), tl.load(tile))

    assert run(kernel, kind)[:17] == [4, 5, 6, 7, 1, 0, 0, 0, *range(16, 24), 0]


@every_engine
def test_known_addresses_stay_known_as_integers(kind: EngineKind) -> None:
    def kernel(x: Any, out: Any) -> None:
        addresses = (x + tl.arange(0, 8)).to(tl.int64)
        assert isinstance(addresses, Index)
        pointers = (addresses + 32).to(tl.pointer_type(tl.float32))
        assert isinstance(pointers, Pointers)
        assert pointers.offsets is None
        tl.store(out + tl.arange(0, 8), tl.load(pointers))

    assert run(kernel, kind)[:9] == [*range(8, 16), 0]


@pytest.mark.parametrize("kind", ENGINES)
@settings(max_examples=10)
@given(places=st.lists(st.integers(0, 31), min_size=8, max_size=8), wide=st.booleans())
def test_computed_addresses_are_integers_and_back_as_numpy_has_them(
    kind: EngineKind, places: list[int], wide: bool
) -> None:
    def kernel(x: Any, out: Any, indices: Any) -> None:
        n = tl.arange(0, 8)
        pointers = x + tl.load(indices + n)
        integers = pointers.to(tl.uint64 if wide else tl.int64)
        back = integers.to(tl.pointer_type(tl.float32))
        tl.store(out + n, tl.load(back))
        tl.store(out + 8 + n, (integers - int(x)).to(tl.float32))

    found = run(kernel, kind, np.array(places, np.int64))
    assert found[:8] == VALUES[places].tolist()
    assert found[8:16] == [4 * place for place in places]


@every_engine
def test_a_table_of_addresses_is_followed(kind: EngineKind) -> None:
    """As an integer argument, as a loaded block, and as one loaded number."""
    bed = Bed(engine=kind)
    x, out = bed.place(VALUES), bed.place(np.zeros(8, np.float32))
    table = bed.place(x.address + 4 * np.array([9, 3, 31, 0]))

    def kernel(address: Any, out: Any, table: Any) -> None:
        n = tl.arange(0, 4)
        tl.store(out + n, tl.load(tl.load(table + n).to(tl.pointer_type(tl.float32))))
        tl.store(out + 4, tl.load(tl.load(table), dtype=tl.float32))
        tl.store(out + 5, tl.load(address.to(tl.pointer_type(tl.float32)) + 5))
        tl.store(out + 6, tl.load(tl.cast(address + 24, tl.pointer_type(tl.float32))))

    bed.launch(kernel, x.address, out, table)
    assert bed.read(out).tolist() == [9, 3, 31, 0, 9, 5, 6, 0]


@every_engine
def test_halves_of_bytes_have_the_address_of_their_byte(kind: EngineKind) -> None:
    bed = Bed(engine=kind)
    x = bed.place(np.arange(8).astype(int4.storage))
    out = bed.place(np.zeros(4, int4.storage))
    table = bed.place(x.address + np.arange(2))

    def kernel(x: Any, out: Any, table: Any) -> None:
        assert int(x + 4) == int(x) + 2
        pointers = (x + 2 * tl.arange(0, 2)).to(tl.int64).to(tl.pointer_type(tl.int4))
        tl.store(out + tl.arange(0, 2), tl.load(pointers))
        loaded = tl.load(table + tl.arange(0, 2)).to(tl.pointer_type(tl.int4))
        tl.store(out + 2 + tl.arange(0, 2), tl.load(loaded))

    bed.launch(kernel, x, out, table)
    assert bed.read(out).astype(np.int8).tolist() == [0, 2, 0, 2]


def test_integers_are_the_same_under_a_sanitizer() -> None:
    sanitizer = Sanitizer()
    bed = Bed()
    workspace = Workspace(bed.workspace.machine, sanitizer=sanitizer)
    x = workspace.place(VALUES, bed.pes)
    seen: list[int] = []

    def kernel(x: Any) -> None:
        seen.append(int(x + 1))
        tl.store(int(x), tl.load(int(x) + 4, shape=(4,), dtype=tl.float32))
        pointers = (x + tl.arange(0, 4)).to(tl.int64).to(tl.pointer_type(tl.float32))
        tl.store(pointers + 8, tl.load(pointers))

    workspace.launch(kernel, x, grid=(1,), pes=bed.pes)
    assert seen == [x.address + 4]
    assert workspace.read(x)[:13].tolist() == [1, 2, 3, 4, 4, 5, 6, 7, 1, 2, 3, 4, 12]
    assert not list(sanitizer.findings)


NO_DTYPE = r"the integer address .* without a dtype, expected pointers, or an address and the dtype"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x: tl.load(int(x)), NO_DTYPE),
        (lambda x: tl.load(int(x), shape=(4,)), NO_DTYPE),
        (lambda x: tl.load(x.to(tl.int64) + tl.arange(0, 4)), NO_DTYPE),
        (lambda x: tl.store(int(x), 1.0), NO_DTYPE),
        (lambda x: tl.ref(int(x), (4,)), NO_DTYPE),
        (lambda x: tl.atomic_add(int(x), 1.0), NO_DTYPE),
        (lambda x: tl.make_block_ptr(int(x), (4,), (1,), (0,), (4,), (0,)), NO_DTYPE),
        (lambda x: tl.make_tensor_descriptor(int(x), [4], [1], [4]), NO_DTYPE),
        (lambda x: tl.composite("neg", tl.ref(x, (4, 4)), None, int(x)), NO_DTYPE),
        (lambda x: int(x + tl.arange(0, 4)), r"addresses of shape \(4,\) where Python needs one"),
        (lambda x: x.to(tl.int32), "addresses converted to tl.int32, expected int64, uint64 or a"),
        (lambda x: x.to(tl.float32), "addresses converted to tl.float32"),
        (
            lambda x: tl.load(x + tl.arange(0, 4)).to(tl.pointer_type(tl.float32)),
            r"<Block fp32\[4\]> as an address, expected an integer",
        ),
        (
            lambda x: tl.load(x.to(tl.int64) + tl.arange(0, 4), shape=(4,), dtype=tl.float32),
            "as the start of a tensor, expected one address",
        ),
        (lambda _: tl.cast(True, tl.pointer_type(tl.float32)), "True as an address"),
    ],
)
def test_an_address_without_what_it_needs_is_refused(wrong: Any, words: str) -> None:
    bed = Bed()
    with pytest.raises(KernelError, match=words) as caught:
        bed.launch(lambda x: wrong(x), bed.place(VALUES))
    assert "test_pointer.py:" in caught.value.where


@every_engine
def test_a_computed_address_between_two_elements_is_refused(kind: EngineKind) -> None:
    def kernel(x: Any, out: Any, table: Any) -> None:
        pointers = (tl.load(table + tl.arange(0, 2)) + int(x)).to(tl.pointer_type(tl.float32))
        tl.store(out + tl.arange(0, 2), tl.load(pointers))

    with pytest.raises(KernelError, match="for elements of fp32, expected a multiple of 4 bytes"):
        run(kernel, kind, np.array([8, 6], np.int64))


@every_engine
def test_an_integer_that_points_into_no_array_is_refused(kind: EngineKind) -> None:
    with pytest.raises(PageFaultError, match="of which 0x1000 is before all tensors"):
        run(lambda _x, _out: tl.load(4096, shape=(4,), dtype=tl.float32), kind)
