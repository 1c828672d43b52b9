"""A store against a dictionary of bytes, with arenas so small that accesses cross many."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.errors import InternalError, MemoryAccessError
from tilewright.memory import ByteStore, store

Bytes = npt.NDArray[np.uint8]
CAPACITY = 300


@pytest.fixture
def small_arenas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "ARENA_SHIFT", 5)
    monkeypatch.setattr(store, "ARENA_BYTES", 32)
    monkeypatch.setattr(store, "CHUNK_BYTES", 8)


@dataclass
class DictOfBytes:
    """What a memory is: bytes by address, one at a time."""

    values: dict[int, int] = field(default_factory=dict)

    def read(self, shape: tuple[int, int], address: int, stride: int) -> list[list[int]]:
        return [
            [self.values.get(address + row * stride + place, 0) for place in range(shape[1])]
            for row in range(shape[0])
        ]

    def write(self, data: Bytes, address: int, stride: int) -> None:
        for row in range(data.shape[0]):
            for place in range(data.shape[1]):
                self.values[address + row * stride + place] = int(data[row, place])


@dataclass(frozen=True)
class Access:
    """Segments that lie inside the store."""

    shape: tuple[int, int]
    address: int
    stride: int
    seed: int

    @property
    def data(self) -> Bytes:
        return np.random.default_rng(self.seed).integers(1, 256, self.shape, np.uint8)


@st.composite
def accesses(draw: st.DrawFn) -> Access:
    count, width = draw(st.integers(0, 6)), draw(st.integers(0, 80))
    most = (CAPACITY - width) // max(1, count - 1)
    stride = draw(st.integers(-most, most) | st.integers(-4, 4).filter(lambda s: abs(s) <= most))
    reach = max(0, count - 1) * stride
    address = draw(st.integers(max(0, -reach), CAPACITY - width - max(0, reach)))
    return Access((count, width), address, stride, draw(st.integers(0, 999)))


def read(memory: ByteStore, access: Access) -> list[list[int]]:
    out = np.full(access.shape, 77, np.uint8)
    memory.read_segments(out, access.address, access.stride)
    found: list[list[int]] = out.tolist()
    return found


@pytest.mark.usefixtures("small_arenas")
@settings(max_examples=200)
@given(steps=st.lists(st.tuples(st.booleans(), accesses()), min_size=1, max_size=8))
def test_a_store_reads_and_writes_as_a_dictionary_of_bytes_does(
    steps: list[tuple[bool, Access]],
) -> None:
    memory, model = ByteStore("m", CAPACITY), DictOfBytes()
    for is_write, access in steps:
        if is_write:
            memory.write_segments(access.data, access.address, access.stride)
            model.write(access.data, access.address, access.stride)
        place = access.address, access.stride
        assert read(memory, access) == model.read(access.shape, *place)
    assert memory.read(0, CAPACITY).tolist() == model.read((1, CAPACITY), 0, 0)[0]


@st.composite
def fills(draw: st.DrawFn) -> tuple[int, int, bytes]:
    address = draw(st.integers(0, CAPACITY))
    num_bytes = draw(st.integers(0, CAPACITY - address))
    element = draw(
        st.sampled_from((1, 2, 3, 4, 8)).flatmap(lambda n: st.binary(min_size=n, max_size=n))
    )
    return address, num_bytes, draw(st.sampled_from((element, bytes(len(element)))))


@pytest.mark.usefixtures("small_arenas")
@settings(max_examples=300)
@given(steps=st.lists(accesses() | fills(), min_size=1, max_size=10))
def test_fills_and_writes_leave_what_they_leave_in_a_bytearray(
    steps: list[Access | tuple[int, int, bytes]],
) -> None:
    memory, model = ByteStore("m", CAPACITY), bytearray(CAPACITY)
    for step in steps:
        if isinstance(step, tuple):
            address, num_bytes, element = step
            memory.fill(address, num_bytes, element)
            model[address : address + num_bytes] = (element * CAPACITY)[:num_bytes]
        else:
            memory.write_segments(step.data, step.address, step.stride)
            written = DictOfBytes()
            written.write(step.data, step.address, step.stride)
            for address, value in written.values.items():
                model[address] = value
            expected = DictOfBytes(dict(enumerate(model)))
            assert read(memory, step) == expected.read(step.shape, step.address, step.stride)
        assert memory.read(0, CAPACITY).tobytes() == bytes(model)


def test_a_fill_of_a_whole_memory_takes_no_space() -> None:
    memory = ByteStore("sip0.cube3.pe5.hbm", 6 * 2**30)
    memory.fill(3, 6 * 2**30 - 5, b"abcd")
    assert memory.read(5 * 2**30, 6).tobytes() == b"bcdabc"
    assert memory.arena_bytes <= 2 * 2**24  # of its two ends
    memory.fill(0, 6 * 2**30, bytes(4))
    assert not memory.read(5 * 2**30, 2**20).any()
    assert memory.arena_bytes <= 2 * 2**24


def test_a_fill_outside_is_refused_and_changes_nothing() -> None:
    memory = ByteStore("m", 100)
    with pytest.raises(MemoryAccessError, match="101 bytes at 0x0"):
        memory.fill(0, 101, b"a")
    assert not memory.read(0, 100).any()


def test_a_part_of_an_array_is_filled_and_the_rest_left_alone() -> None:
    memory = ByteStore("m", 2**30)
    memory.write(2**24 - 2, bytes([1, 2, 3, 4]))  # over the end of an arena
    out = np.full((2, 6), 9, np.uint8)
    memory.read_segments(out[:, 1:3], 2**24 - 2, 2)
    assert out.tolist() == [[9, 1, 2, 9, 9, 9], [9, 3, 4, 9, 9, 9]]


def test_what_was_written_stays_when_the_callers_array_changes() -> None:
    memory, data = ByteStore("m", 100), np.array([1, 2, 3], np.uint8)
    memory.write(5, data)
    found = memory.read(5, 3)
    data[:] = 0
    memory.write(5, b"\x07")
    assert found.tolist() == [1, 2, 3]


def test_only_arenas_that_were_written_take_space() -> None:
    memory = ByteStore("sip0.cube3.pe5.hbm", 6 * 2**30)
    assert memory.read(5 * 2**30, 100).tolist() == [0] * 100
    assert memory.arena_bytes == 0
    memory.write(5 * 2**30, b"a")
    assert repr(memory) == f"<ByteStore 'sip0.cube3.pe5.hbm', {2**24} of {6 * 2**30} bytes>"


@pytest.mark.parametrize(
    ("address", "count", "stride", "low", "size"),
    [(-1, 1, 0, -1, 4), (97, 1, 4, 97, 4), (0, 2, 97, 0, 101), (5, 3, -3, -1, 10)],
)
@pytest.mark.parametrize("is_write", [False, True])
def test_an_access_outside_is_refused_and_changes_nothing(
    address: int, count: int, stride: int, low: int, size: int, is_write: bool
) -> None:
    memory = ByteStore("sip0.cube3.pe5.tcm", 100)
    move = memory.write_segments if is_write else memory.read_segments
    with pytest.raises(MemoryAccessError) as caught:
        move(np.ones((count, 4), np.uint8), address, stride)
    assert str(caught.value) == (
        f"sip0.cube3.pe5.tcm: found an access to {size} bytes at {low:#x}, expected bytes of its "
        "100; correct the address or the size"
    )
    found = caught.value
    assert (found.address, found.num_bytes, found.capacity_bytes) == (low, size, 100)
    assert memory.arena_bytes == 0


def test_single_calls_refuse_what_is_outside() -> None:
    memory = ByteStore("m", 10)
    for call in (
        lambda: memory.read(8, 3),
        lambda: memory.read(8, -1),
        lambda: memory.write(8, b"abc"),
    ):
        with pytest.raises(MemoryAccessError, match="m: found an access to "):
            call()


def test_an_array_of_other_elements_is_refused() -> None:
    with pytest.raises(InternalError, match="an array of float32, expected bytes"):
        ByteStore("m", 100).read_segments(np.zeros((1, 4), np.float32), 0, 0)
