"""What a rank brings to a call: whole tensors, or neighbouring rows of them, part by part."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.collectives.operation import Operation
from tilewright.errors import CollectiveError
from tilewright.language.dtype import DType
from tilewright.runtime.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Piece:
    """A whole tensor, or some of its rows.

    ``is_stacked``: its one row is a tensor of one axis less, as in a pile of tensors.
    """

    tensor: Tensor
    rows: range | None = None  # None: all of it
    is_stacked: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.tensor, Tensor):
            found = f"an object of {type(self.tensor).__name__}"
            fix = "make it one by torch.from_numpy, or a list of them where one is asked for"
            raise CollectiveError("collective", found, "a tensor of the context", fix)

    @property
    def shape(self) -> tuple[int, ...]:
        shape = self.tensor.shape
        if self.rows is None:
            return shape
        return shape[1:] if self.is_stacked else (len(self.rows), *shape[1:])

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def elements(self) -> slice:
        """Of the row-major whole."""
        start = 0 if self.rows is None else self.rows.start * prod(self.tensor.shape[1:])
        return slice(start, start + self.size)


Pieces = tuple[Piece | None, ...]


@dataclass(frozen=True, slots=True)
class Buffers:
    """The parts of an operation's buffer at one rank; None for a part that it does not have."""

    sources: Pieces
    targets: Pieces

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple(piece for piece in (*self.sources, *self.targets) if piece is not None)

    @property
    def num_parts(self) -> int:
        return len(self.sources)

    @property
    def dtype(self) -> DType:
        return self.pieces[0].tensor.dtype

    @property
    def part_sizes(self) -> dict[int, int]:
        """Elements of the parts that the rank has."""
        return {part: piece.size for part, piece in self.by_part()}

    def by_part(self) -> Iterator[tuple[int, Piece]]:
        """Yield the pieces that the rank has and their parts, sources first."""
        for pieces in (self.sources, self.targets):
            for part, piece in enumerate(pieces):
                if piece is not None:
                    yield part, piece

    def check(self, operation: Operation) -> None:
        """Refuse tensors of one call that do not belong together."""
        where, first = operation.value, self.pieces[0]
        sizes: dict[int, Piece] = {}
        for part, piece in self.by_part():
            tensor = piece.tensor
            if tensor.dtype is not first.tensor.dtype:
                found = f"tensors of {first.tensor.dtype} and {tensor.dtype}"
                raise CollectiveError(where, found, "one dtype", "convert one of them")
            rival = sizes.setdefault(part if operation is Operation.ALL_TO_ALL else 0, piece)
            if piece.size != rival.size:
                found = f"parts of {rival.size} and {piece.size} elements"
                fix = "let all parts of a call have as many"
                raise CollectiveError(where, found, "parts of one size", fix)


def only_at(place: int, piece: Piece | None, count: int) -> Pieces:
    """One part of several."""
    return tuple(piece if part == place else None for part in range(count))


def equal_rows(where: str, tensor: Tensor, count: int, part: Tensor | None = None) -> Pieces:
    """As many rows for each rank; a pile of tensors if it is one axis higher than ``part``."""
    shape = Piece(tensor).shape
    if part is not None and shape == (count, *Piece(part).shape):
        return tuple(Piece(tensor, range(row, row + 1), is_stacked=True) for row in range(count))
    if not shape or shape[0] % count:
        found = f"a tensor of shape {shape} for {count} ranks"
        fix = "let the first axis be a multiple of the number of ranks"
        raise CollectiveError(where, found, "as many rows for each rank", fix)
    return _cut(tensor, [shape[0] // count] * count)


def rows_by_size(
    where: str, tensor: Tensor, sizes: Sequence[int] | None, count: int
) -> tuple[Piece, ...]:
    """So many rows for each rank; without sizes as many for each."""
    if not sizes:
        return tuple(piece for piece in equal_rows(where, tensor, count) if piece is not None)
    shape = Piece(tensor).shape
    if len(sizes) != count or sum(sizes) != (shape or (0,))[0] or min(sizes) < 0:
        found = f"the split sizes {list(sizes)} of a tensor of shape {shape}"
        expected = f"{count} sizes that add up to its first axis"
        raise CollectiveError(where, found, expected, "correct the split sizes")
    return _cut(tensor, sizes)


def _cut(tensor: Tensor, sizes: Iterable[int]) -> tuple[Piece, ...]:
    pieces = []
    start = 0
    for size in sizes:
        pieces.append(Piece(tensor, range(start, start + size)))
        start += size
    return tuple(pieces)


def pairs_of(rank: int, outputs: Sequence[Piece], inputs: Sequence[Piece]) -> Buffers:
    """Of an all-to-all: what goes to each rank, and what comes from each."""
    ranks = range(len(inputs))
    pairs = [(sender, receiver) for sender in ranks for receiver in ranks]
    return Buffers(
        tuple(inputs[receiver] if sender == rank else None for sender, receiver in pairs),
        tuple(outputs[sender] if receiver == rank else None for sender, receiver in pairs),
    )
