"""Kernels that carry out several stages of a row in one program."""

from collections.abc import Mapping, Sequence

from tilewright.attention.codegen.attend_blocks import AttendBlocks
from tilewright.attention.codegen.attend_pages import attend_lines
from tilewright.attention.codegen.body import Body, padded
from tilewright.attention.codegen.compute_pages import loop_lines, page_work
from tilewright.attention.codegen.kernel_file import Grid, Kernel, ScratchAxis, Stage
from tilewright.attention.codegen.list_pages import list_lines
from tilewright.attention.codegen.merge_parts import finish_lines, part_lines
from tilewright.attention.codegen.row_text import RowForm, row_start
from tilewright.attention.codegen.select_block import select_block_lines
from tilewright.attention.codegen.stage_function import StageFunction
from tilewright.attention.codegen.target import Merge
from tilewright.attention.codegen.text import kernel_text
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.codegen.traffic import (
    NUMBER_BYTES,
    Traffic,
    attend_traffic,
    list_traffic,
    select_traffic,
)
from tilewright.attention.codegen.tree_merge import merge_tree_lines, select_tree_lines
from tilewright.attention.graph import Geometry, Graph, Node
from tilewright.errors import InternalError

__all__ = (
    "attend_stages",
    "emit_row_kernel",
    "list_stage",
    "load_stage",
    "score_stage",
    "select_stage",
)


def score_stage(
    graph: Graph,
    tiling: Tiling,
    form: RowForm,
    index: int,
    rounds: Mapping[Node, int],
    scratch: Mapping[Node, str],
    scores: Node,
) -> tuple[StageFunction, int]:
    """The scores of all pages of a member as one block, and how many pages that block has."""
    if form.target is None:
        raise InternalError("scores", "no target", "a whole row", "report it")
    work = page_work(graph, tiling, form, index, rounds, scratch, stored=(), kept=(scores,))
    tiles = padded(-(-form.target.pages // work.tile))
    value = f"tl.reshape({work.names[scores]}, (1, {work.tile}))"
    after = [f"scores = tl.where(turn == start // {work.tile}, {value}, scores)"]
    lines = [
        f"num_full = num_tokens // {form.page_size}",
        *work.ahead,
        f"scores = tl.zeros(({tiles}, {work.tile}), tl.float32)",
        f"turn = tl.arange(0, {tiles})[:, None]",
        *loop_lines(form, work, after),
        f"scores = tl.reshape(scores, ({tiles * work.tile},))",
    ]
    purpose = f"Scores of at most {tiles * work.tile} pages."
    function = StageFunction(
        "score_pages",
        Stage.SCORING,
        purpose,
        work.body,
        lines,
        result="scores",
        traffic=work.traffic,
    )
    return function, tiles * work.tile


def select_stage(node: Node, form: RowForm, *, pages: int, chosen: str) -> StageFunction:
    body = Body(page_tokens=None)
    form.preamble(body)
    emit = select_block_lines if form.merge is Merge.MEMORY else select_tree_lines
    lines = emit(node, form, body, scores="scores", pages=pages, chosen=chosen)
    purpose = f"{node.op.name}: marks of the pages that are chosen."
    given = {"scores": f"float32 [{pages}]"}
    traffic = select_traffic(on_chip=True)
    return StageFunction(
        "select_pages", Stage.SELECTION, purpose, body, lines, given, traffic=traffic
    )


def load_stage(node: Node, form: RowForm, *, scores: str) -> tuple[StageFunction, int]:
    """Scores that an earlier kernel left in memory as one block, and how many pages it has."""
    if form.target is None:
        raise InternalError("scores", "no target", "a whole row", "report it")
    body = Body(page_tokens=None)
    form.preamble(body)
    pages = padded(form.target.pages)
    body.need(scores, "[rows, pages, 1, 1]")
    lines = [
        f"own = tl.arange(0, {pages})",
        f"place = {row_start(body, scores)} + {form.page_of('own')}",
        f"scores = tl.load(place, mask=own < {form.num_own}, other=0).to(tl.float32)",
    ]
    purpose = f"Scores of at most {pages} pages: {node.inputs[0].op.name}."
    traffic = Traffic(Stage.SELECTION, page_bytes=NUMBER_BYTES)
    function = StageFunction(
        "load_scores", Stage.SELECTION, purpose, body, lines, result="scores", traffic=traffic
    )
    return function, pages


def list_stage(
    tiling: Tiling, form: RowForm, *, chosen: str, columns: int, axis: ScratchAxis
) -> StageFunction:
    body = Body(page_tokens=None)
    form.preamble(body)
    lines = list_lines(tiling, form, body, chosen=chosen, columns=columns, axis=axis)
    purpose = "Chosen pages in logical order."
    traffic = list_traffic(columns)
    return StageFunction("list_pages", Stage.SELECTION, purpose, body, lines, traffic=traffic)


def attend_stages(
    sizes: Geometry, tiling: Tiling, form: RowForm, *, chosen: str | None, is_listed: bool = True
) -> list[StageFunction]:
    """Attention, and the merge of members if it goes over queues."""
    body = Body(page_tokens=None)
    form.preamble(body)
    blocks = AttendBlocks.of(sizes, tiling, is_exact=True)
    lines = attend_lines(sizes, tiling, form, body, chosen=chosen, is_listed=is_listed)
    purpose = f"Softmax over {'listed' if is_listed else 'all'} pages."
    traffic = attend_traffic(sizes, is_listed=is_listed, loads_latents_once=True)
    if form.merge is Merge.IPCQ:
        result = "largest, total, weighted"
        attending = StageFunction(
            "attend_pages",
            Stage.ATTENTION,
            purpose,
            body,
            lines,
            result=result,
            traffic=traffic,
        )
        return [attending, _merge_stage(sizes, form, blocks.values)]
    ending = part_lines(sizes, body, form.part) if form.part else finish_lines(sizes, body)
    lines += [f"value_channel = tl.arange(0, {blocks.values})[None, :]", *ending]
    return [StageFunction("attend_pages", Stage.ATTENTION, purpose, body, lines, traffic=traffic)]


def _merge_stage(sizes: Geometry, form: RowForm, channels: int) -> StageFunction:
    body = Body(page_tokens=None)
    form.preamble(body)
    heads = sizes.query_heads
    given = {
        "largest": f"float32 [{heads}, 1]: logits of the member",
        "total": f"float32 [{heads}, 1]: of weights relative to it",
        "weighted": f"float32 [{heads}, {channels}]: values by these weights",
    }
    lines = merge_tree_lines(sizes, form, body, channels=channels)
    purpose = "The attention of a row from those of its members, up a tree."
    return StageFunction("merge_members", Stage.MERGE, purpose, body, lines, given)


def emit_row_kernel(
    name: str, form: RowForm, stages: Sequence[StageFunction]
) -> tuple[Kernel, str]:
    """One kernel that calls the stages in order; the text has their functions ahead of it."""
    body = Body(page_tokens=None)
    lines = form.preamble(body)
    for stage in stages:
        for argument, holds in stage.body.arguments.items():
            if argument in stage.parameters:
                body.need(argument, holds)
        lines.append(stage.call())
    what = "row" if form.part is None else "row and member"
    kernel = Kernel(
        name,
        Grid.ROW_MEMBERS,
        tuple(body.arguments),
        stages=tuple(dict.fromkeys(stage.stage for stage in stages)),
        traffic=tuple(stage.traffic for stage in stages if stage.traffic is not None),
    )
    purpose = f"All of a row in one program: a program for each {what}."
    text = kernel_text(name, purpose, body.arguments, lines)
    return kernel, "\n\n".join([*(stage.text() for stage in stages), text])
