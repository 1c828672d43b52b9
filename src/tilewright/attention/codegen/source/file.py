"""A file of kernels: its functions, the stages that they are, and what a launcher must know."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tilewright.attention.codegen.plan.target import Cut, Decision, Merge, Target, Tiling
from tilewright.attention.codegen.plan.traffic import Stage, Traffic
from tilewright.attention.codegen.source.builder import Body, Shape
from tilewright.attention.codegen.source.helpers import GROUPS
from tilewright.attention.codegen.source.row import RowForm
from tilewright.attention.codegen.source.tree import (
    Function,
    assigned,
    called,
    code,
    used,
    without_unused,
)
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


def stage_of(traffic: Traffic | Stage) -> Stage:
    """Return the stage of what is known of its bytes, or the stage itself if nothing is."""
    return traffic.stage if isinstance(traffic, Traffic) else traffic


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
        stages = tuple(dict.fromkeys(map(stage_of, traffic)))
        kernel = Kernel(name, grid, tuple(body.arguments), tile, stages, known)
        return Emitted(kernel, (*ahead, Function(name, purpose, body.arguments, body.statements)))


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that lives for one step: an argument of that name, with this type.

    Its argument ``<name>_row`` is the elements from a row to the next; with a second axis of
    members or parts ``<name>_member`` is those from one to the next.
    """

    name: str
    axis: ScratchAxis
    shape: Shape
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
        found = Counter[Stage]()
        for item in (item for kernel in self.step for item in kernel.traffic):
            found[item.stage] += item.of(pages=pages, listed=listed, heads=heads)
        return dict(found)


def lists_of(form: RowForm) -> tuple[Scratch, ...]:
    """Return the lists of chosen pages, their lengths and tokens."""
    pages, one = ScratchAxis.PAGES, ScratchAxis.ROWS
    if form.part is not None:
        pages, one = ScratchAxis.MEMBER_PAGES, ScratchAxis.PARTS
    axes = {"page_list": pages, "list_length": one, "list_tokens": one}
    return tuple(Scratch(f"{key}{form.suffix}", at, (), DType.INT32) for key, at in axes.items())


def outputs_of(
    form: RowForm, output: str = "output", sums: str = "log_sum_exp"
) -> tuple[Scratch, ...]:
    """Return what attention leaves: its values, and their log-sum-exp."""
    heads, width = form.sizes.query_heads, form.sizes.value_dim
    return _floats(form, ScratchAxis.ROWS, {output: (heads, width), sums: (heads,)})


def parts_of(form: RowForm) -> tuple[Scratch, ...]:
    """Return what a part leaves for the merge, if parts meet in memory."""
    heads, width = form.sizes.query_heads, form.sizes.value_dim
    shapes = {"largest": (heads,), "total": (heads,), "weighted": (heads, width)}
    parts = {f"part_{name}": shape for name, shape in shapes.items() if form.has_parts}
    return _floats(form, ScratchAxis.PARTS, parts)


def _floats(form: RowForm, axis: ScratchAxis, shapes: Mapping[str, Shape]) -> tuple[Scratch, ...]:
    return tuple(
        Scratch(f"{name}{form.suffix}", axis, shape, DType.FLOAT32)
        for name, shape in shapes.items()
    )


_LOCALS = {
    "row": "requests times KV heads",
    "request": "of the row",
    "head": "KV head of the row",
    "num_tokens": "of the row",
    "num_pages": "of the row",
    "member": "who has a share of the row",
    "first_own": "its first page",
    "num_own": "and how many it has",
}


@dataclass(frozen=True, slots=True)
class StageFunction:
    """``given`` are blocks of earlier stages and what they hold; ``result`` is what it returns."""

    name: str
    purpose: str
    body: Body
    traffic: Traffic | Stage  # the stage alone, if its bytes are not known
    given: dict[str, str] = field(default_factory=dict)
    result: str = ""

    def function(self) -> Function:
        """Return the function; its parameters are what it reads, in a fixed order."""
        ending = code(f"return {self.result}") if self.result else []
        statements = without_unused(self.body.statements, used(ending)) + ending
        names = used(statements) | assigned(statements)
        known = {**self.given, **_LOCALS, **self.body.arguments}
        parameters = {name: holds for name, holds in known.items() if name in names}
        return Function(self.name, self.purpose, parameters, statements)


def emit_row_kernel(name: str, form: RowForm, stages: Sequence[StageFunction]) -> Emitted:
    """Emit one kernel that calls the stages in order; their functions are ahead of it."""
    body = Body()
    body.add(form.preamble(body))
    functions = [stage.function() for stage in stages]
    for stage, function in zip(stages, functions, strict=True):
        for argument, holds in stage.body.arguments.items():
            if argument in function.arguments:
                body.need(argument, holds)
        call = f"{stage.name}({', '.join(function.arguments)})"
        body.add(f"{stage.result} = {call}" if stage.result else call)
    purpose = f"All of a row in one program: a program for each {form.program}."
    traffic = [stage.traffic for stage in stages]
    return Emitted.of(name, purpose, body, Grid.ROW_MEMBERS, *traffic, ahead=functions)


def helpers_of(functions: Iterable[Function]) -> list[str]:
    """Return the groups of which a kernel, or a helper that is needed, calls some function.

    >>> from tilewright.attention.codegen.source.tree import code
    >>> helpers_of([Function("f", "", {}, code("x = round_to_e5m2(x)"))]) == [GROUPS[0]]
    True
    """
    wanted = {name for function in functions for name, _ in called(function.body)}
    needed: set[str] = set()
    for group in reversed(GROUPS):
        if wanted.intersection(re.findall(r"^def (\w+)", group, re.MULTILINE)):
            needed.add(group)
            wanted.update(re.findall(r"(?<!\.)\b(\w+)\(", group))
    return [group for group in GROUPS if group in needed]


@dataclass(slots=True, kw_only=True)
class FileParts:
    """Kernels of a step in their order, the memory between them, and functions that some call."""

    flow: str
    origin: str
    form: RowForm
    completion: Emitted | None = None
    kernels: list[Emitted] = field(default_factory=list)
    scratch: list[Scratch] = field(default_factory=list)
    stages: list[StageFunction] = field(default_factory=list)
    marks: str = ""
    decisions: tuple[Decision, ...] = ()
    most: int | None = None

    def file(self, results: Iterable[Scratch]) -> KernelFile:
        """Print the functions of all kernels, with the helpers that they call."""
        emitted = [*([] if self.completion is None else [self.completion]), *self.kernels]
        functions = [function for item in emitted for function in item.functions]
        form, sizes = self.form, self.form.sizes
        head = f'''\
"""Kernels of the flow {self.flow}, generated from {self.origin}.

{sizes.kind}: pages of {sizes.page_size} tokens, {sizes.query_heads} query heads,
keys of {sizes.key_dim} and values of {sizes.value_dim} channels.
"""

import triton
import triton.language as tl
'''
        texts = [head, *helpers_of(functions), *(function.text() for function in functions)]
        return KernelFile(
            flow=self.flow,
            geometry=sizes,
            tiling=form.tiling,
            target=form.target,
            text="\n\n".join(texts),
            completion=None if self.completion is None else self.completion.kernel,
            step=tuple(item.kernel for item in self.kernels),
            scratch=tuple(self.scratch),
            results=tuple(results),
            marks=self.marks,
            merge=form.merge,
            cut=form.cut,
            decisions=self.decisions,
            stage_of=tuple((item.name, stage_of(item.traffic)) for item in self.stages),
            most=self.most,
        )
