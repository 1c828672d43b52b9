"""What a compiled flow is: the text of its kernels, and what a launcher must know."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from tilewright.attention.codegen.plan.cut import Cut, Decision
from tilewright.attention.codegen.plan.target import Merge, Target, Tiling
from tilewright.attention.codegen.plan.traffic import Stage, Traffic, predicted_bytes
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.row import RowForm
from tilewright.attention.codegen.source.tree import Function
from tilewright.attention.graph import DType, Geometry


class Grid(StrEnum):
    """What the programs of a kernel stand for, axis by axis."""

    NEW_PAGES = "new pages, KV heads"
    ROW_TILES = "rows, tiles of pages"
    ROW_COLUMNS = "rows, columns of scores"
    ROWS = "rows"
    ROW_PARTS = "rows, parts of the list"
    ROW_MEMBERS = "rows, members"


class ScratchAxis(StrEnum):
    """The axes of scratch memory before its inner shape."""

    PAGES = "rows, pages"
    MEMBER_PAGES = "rows, members, pages"
    PARTS = "rows, parts"  # a part is a member, where rows have members
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of the file. ``tile`` is the pages of a program under `Grid.ROW_TILES`."""

    name: str
    grid: Grid
    arguments: tuple[str, ...]
    tile: int = 1  # pages of a program, or columns of scores
    stages: tuple[Stage, ...] = ()
    traffic: tuple[Traffic, ...] = ()  # what is known of the bytes it moves


@dataclass(frozen=True, slots=True)
class Emitted:
    """A kernel before it is text: it is the last of its functions, the others are its stages."""

    kernel: Kernel
    functions: tuple[Function, ...]

    @staticmethod
    def of(
        name: str,
        purpose: str,
        body: Body,
        grid: Grid,
        *traffic: Traffic | Stage,
        tile: int = 1,
        ahead: Iterable[Function] = (),
    ) -> "Emitted":
        """Make a kernel with the stages of its traffic; of some nothing else is known."""
        known = tuple(item for item in traffic if isinstance(item, Traffic))
        stages = [item.stage if isinstance(item, Traffic) else item for item in traffic]
        each = tuple(dict.fromkeys(stages))
        kernel = Kernel(name, grid, tuple(body.arguments), tile, each, known)
        return Emitted(kernel, (*ahead, Function(name, purpose, body.arguments, body.statements)))


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that lives for one step: an argument of that name, with this type.

    Its argument ``<name>_row`` is the elements from a row to the next; with a second axis of
    members or parts ``<name>_member`` is those from one to the next.
    """

    name: str
    axis: ScratchAxis
    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFile:
    """``step`` runs in order for every decode step; ``completion`` when pages become complete.

    ``results`` are what a step leaves: output, log_sum_exp, and the lists of pages it read.
    ``marks`` is the scratch memory of chosen pages, one byte each; empty if nothing is chosen.
    ``decisions`` say why stages share kernels, or do not; ``stage_of`` has the stages of functions
    that kernels call.
    """

    flow: str
    geometry: Geometry
    tiling: Tiling
    target: Target | None
    text: str
    completion: Kernel | None
    step: tuple[Kernel, ...]
    scratch: tuple[Scratch, ...]
    results: tuple[Scratch, ...]
    marks: str
    merge: Merge
    cut: Cut
    decisions: tuple[Decision, ...]
    stage_of: tuple[tuple[str, Stage], ...] = ()
    most: int | None = None  # candidates that plans may choose of a row that does not choose all

    def predicted_bytes(self, *, pages: int, listed: int, heads: int = 1) -> dict[Stage, int]:
        """Count the bytes of a row of so many pages by stage, if attention reads so many of them.

        ``heads`` are the KV heads of its request, which some ops over all pages look at.
        """
        traffic = [item for kernel in self.step for item in kernel.traffic]
        return predicted_bytes(traffic, pages=pages, listed=listed, heads=heads)


def lists_of(form: RowForm) -> tuple[Scratch, ...]:
    """Return the lists of chosen pages, their lengths and tokens."""
    pages, one = ScratchAxis.PAGES, ScratchAxis.ROWS
    if form.part is not None:
        pages, one = ScratchAxis.MEMBER_PAGES, ScratchAxis.PARTS
    return (
        Scratch("page_list", pages, (), DType.INT32),
        Scratch("list_length", one, (), DType.INT32),
        Scratch("list_tokens", one, (), DType.INT32),
    )


def outputs_of(
    sizes: Geometry, output: str = "output", sums: str = "log_sum_exp"
) -> tuple[Scratch, ...]:
    """Return what attention leaves: its values, and their log-sum-exp."""
    heads, width = sizes.query_heads, sizes.value_dim
    return (
        Scratch(output, ScratchAxis.ROWS, (heads, width), DType.FLOAT32),
        Scratch(sums, ScratchAxis.ROWS, (heads,), DType.FLOAT32),
    )


def parts_of(form: RowForm) -> tuple[Scratch, ...]:
    """Return what a part leaves for the merge, if parts meet in memory."""
    heads, width = form.sizes.query_heads, form.sizes.value_dim
    shapes = {"largest": (heads,), "total": (heads,), "weighted": (heads, width)}
    return tuple(
        Scratch(f"part_{name}", ScratchAxis.PARTS, shape, DType.FLOAT32)
        for name, shape in shapes.items()
        if form.has_parts
    )
