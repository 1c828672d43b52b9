"""Tensors in memory as errors and the sanitizer know them: which byte is which element of which."""

from collections.abc import Iterable

from tilewright.language.dtype import DType, int4
from tilewright.memory.sanitizer.tensor import Region, TensorBook, TensorPart, WatchedTensor
from tilewright.runtime.placement.pages import TensorPages


def watched_tensor(pages: TensorPages) -> WatchedTensor:
    """Describe a tensor to a book or a sanitizer."""
    placement, base = pages.placement, pages.base
    regions = [
        Region(
            home=home,
            offset=piece.offset,
            address=base + piece.span.start,
            num_bytes=len(piece.span),
            kind=placement.memory,
            times=piece.times,
            step=piece.step,
            offset_step=piece.offset_step,
        )
        for home in placement.homes
        for piece in pages.repeated_pieces(home)
    ]
    parts = [
        TensorPart(base + part.offset, tuple(extent.start for extent in part.box), part.shape)
        for part in placement.parts
    ]
    bits = item_bits(placement.dtype)
    return WatchedTensor(
        placement.name, placement.shape, str(placement.dtype), bits, parts, regions, pages.sight
    )


def book_of(tensors: Iterable[TensorPages]) -> TensorBook:
    """Return a book of these tensors, for the text of one error."""
    book = TensorBook()
    for pages in tensors:
        book.add(watched_tensor(pages))
    return book


def item_bits(dtype: DType) -> int:
    """Return the bits that an element has in memory."""
    return dtype.bits if dtype is int4 else 8 * dtype.storage.itemsize
