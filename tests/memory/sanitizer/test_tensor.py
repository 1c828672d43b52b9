"""Whose a byte is: against every byte, one by one."""

from hypothesis import given
from hypothesis import strategies as st

from tilewright.machine.coords import PeCoord
from tilewright.memory.address import MemoryKind, MemoryPlace, Segments
from tilewright.memory.mapping import Sight
from tilewright.memory.sanitizer.tensor import Region, TensorBook, TensorPart, WatchedTensor

BASE = 2**32
PES = [PeCoord(0, 0, pe) for pe in range(3)] + [PeCoord(1, 0, 0)]


def made(
    book: TensorBook, regions: list[Region], *, sight: Sight = Sight.ALL, base: int = BASE
) -> WatchedTensor:
    parts = [TensorPart(base, (0,), (1000,))]
    return book.add(WatchedTensor("x", (1000,), "i8", 8, parts, regions, sight))


@st.composite
def regions(draw: st.DrawFn) -> list[Region]:
    """With gaps and neighbours, dealt to PEs; some repeat."""
    found, at = [], 0
    for _ in range(draw(st.integers(1, 6))):
        at += draw(st.integers(0, 3))
        size, pe = draw(st.integers(1, 12)), draw(st.sampled_from(PES))
        if draw(st.booleans()):
            found.append(Region(pe, at, BASE + at, size))
            at += size
            continue
        step, times = size + draw(st.integers(0, 3)), draw(st.integers(2, 3))
        found.append(Region(pe, at, BASE + at, size, MemoryKind.HBM, times, step, size))
        at += step * times
    return found


def bytes_of(region: Region) -> list[int]:
    return [byte for each in region.extent.single() for byte in range(each.first, each.end)]


spans = st.builds(
    Segments,
    st.integers(BASE - 8, BASE + 70),
    st.integers(1, 5),
    st.integers(1, 9),
    st.integers(9, 16),
)


@given(regions(), spans, st.sampled_from(PES), st.sampled_from(Sight))
def test_bytes_outside_are_those_that_no_region_of_the_view_has(
    parts: list[Region], span: Segments, pe: PeCoord, sight: Sight
) -> None:
    tensor = made(TensorBook(), parts, sight=sight)
    sees = {Sight.OWN: [pe], Sight.SIP: [each for each in PES if each.sip == pe.sip]}
    seen = {
        byte for region in parts if region.home in sees.get(sight, PES) for byte in bytes_of(region)
    }
    touched = [
        span.address + place * span.stride_bytes + offset
        for place in range(span.num_segments)
        for offset in range(span.segment_bytes)
    ]
    missing = [byte for byte in touched if byte not in seen]
    assert tensor.outside(pe, span) == ((missing[0], len(missing)) if missing else None)


@given(st.integers(-(2**46), 2**46), st.sampled_from([1, 2]), st.integers(0, 99))
def test_an_address_keeps_its_tensor_whatever_is_added_to_it(
    added: int, scale: int, place: int
) -> None:
    book = TensorBook()
    for number in range(3):
        base = BASE + number * 2**20
        made(book, [Region(PES[0], number * 1000, base, 1000)], base=base)
    wanted = list(book)[1]
    address = wanted.low + place
    tagged = book.tagged(address)
    assert tagged != address
    assert book.tagged(tagged) == tagged
    assert book.untagged(tagged * scale + added, scale) == (address * scale + added, wanted)
    assert tagged * 2 + added < 2**63


def test_an_address_of_no_tensor_has_no_tag() -> None:
    book = TensorBook()
    assert book.tagged(BASE) == BASE
    assert book.untagged(BASE) == (BASE, None)


def test_an_address_of_a_freed_tensor_is_still_known() -> None:
    book = TensorBook()
    tensor = made(book, [Region(PES[0], 0, BASE, 100)])
    tagged = book.tagged(BASE + 5)
    book.remove(tensor, at_ps=70)
    assert tensor.freed_ps == 70
    assert book.at(BASE + 5) is tensor
    assert book.untagged(tagged) == (BASE + 5, tensor)
    assert not list(book)


@given(
    low=st.lists(st.integers(0, 9), min_size=1, max_size=3),
    data=st.data(),
    item_bits=st.sampled_from([4, 8, 32]),
)
def test_an_element_is_found_by_its_byte(
    low: list[int], data: st.DataObject, item_bits: int
) -> None:
    shape = tuple(data.draw(st.integers(1, 5)) for _ in low)
    num_elements = 1
    for extent in shape:
        num_elements *= extent
    element = data.draw(st.integers(0, num_elements - 1))
    if item_bits == 4:
        element -= element % 2  # the lower half of a byte
    size = -(-num_elements * item_bits // 8)
    tensor = WatchedTensor(
        "x", shape, "t", item_bits, [TensorPart(BASE, tuple(low), shape)],
        [Region(PES[0], 0, BASE, size)],
    )  # fmt: skip
    index = []
    rest = element
    for extent in reversed(shape):
        index.append(rest % extent)
        rest //= extent
    expected = ", ".join(str(a + b) for a, b in zip(low, reversed(index), strict=True))
    assert tensor.element_at(BASE + element * item_bits // 8) == f"x[{expected}]"


def test_a_byte_outside_is_told_by_its_distance() -> None:
    tensor = made(TensorBook(), [Region(PES[0], 0, BASE, 100)])
    assert tensor.element_at(BASE + 100) == "x + 100 bytes"
    assert tensor.element_at(BASE - 4) == "x - 4 bytes"


def test_a_byte_of_a_slice_leads_to_its_tensor() -> None:
    book = TensorBook()
    tensor = made(book, [Region(PES[1], 4096, BASE, 50), Region(PES[2], 0, BASE + 50, 50)])
    assert book.in_memory(MemoryPlace(MemoryKind.HBM, PES[2]), 7) == (tensor, BASE + 57)
    assert book.in_memory(MemoryPlace(MemoryKind.HBM, PES[1]), 4095) is None
    assert book.in_memory(MemoryPlace(MemoryKind.HBM, PES[0]), 4096) is None
