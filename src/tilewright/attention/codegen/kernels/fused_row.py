"""Kernels that carry out several stages of a row in one program."""

from collections.abc import Sequence
from dataclasses import replace

from tilewright.attention.codegen.kernels.attend import AttendBlocks, attend_code, end_code
from tilewright.attention.codegen.kernels.compute import PageRound, PageWork, loop_code, page_work
from tilewright.attention.codegen.kernels.select_block import select_block_code
from tilewright.attention.codegen.kernels.select_segments import (
    ScoreMemory,
    best_in_code,
    keep_code,
    mark_segment_code,
    segment_start_code,
)
from tilewright.attention.codegen.kernels.tree_merge import merge_tree_code, select_tree_code
from tilewright.attention.codegen.plan.cut import Selection
from tilewright.attention.codegen.plan.target import Merge, padded
from tilewright.attention.codegen.plan.traffic import (
    MARK_BYTES,
    NUMBER_BYTES,
    Stage,
    Traffic,
    attend_traffic,
)
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.file import Emitted, Grid, Kernel
from tilewright.attention.codegen.source.row import RowForm, row_start
from tilewright.attention.codegen.source.stage import StageFunction
from tilewright.attention.codegen.source.tree import Function, Statement, code
from tilewright.attention.graph import Node
from tilewright.errors import InternalError


def score_stage(page_round: PageRound, scores: Node) -> tuple[StageFunction, int]:
    """Score all pages of a member to one block; return how many pages that block has, too.

    In two levels: the best of them, and the scores in memory.
    """
    form = page_round.form
    if form.target is None:
        raise InternalError("scores", "no target", "a whole row", "report it")
    work = page_work(page_round, kept=(scores,))
    full = code(f"num_full = num_tokens // {form.page_size}")
    if form.cut.selection is Selection.SEGMENTS:
        return _best_stage(form, work, full, work.names[scores], page_round.scratch[scores]), 0
    tiles = padded(-(-form.target.pages // work.tile))
    value = f"tl.reshape({work.names[scores]}, (1, {work.tile}))"
    ahead = code(f"""
        scores = tl.zeros(({tiles}, {work.tile}), tl.float32)
        turn = tl.arange(0, {tiles})[:, None]
    """)
    after = code(f"scores = tl.where(turn == start // {work.tile}, {value}, scores)")
    ending = code(f"scores = tl.reshape(scores, ({tiles * work.tile},))")
    lines = [*full, *work.ahead, *ahead, *loop_code(form, work, after), *ending]
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


def _best_stage(
    form: RowForm, work: PageWork, full: list[Statement], scores: str, memory: str
) -> StageFunction:
    start = segment_start_code(form, work.body, ScoreMemory(memory, is_logical=False))
    after = keep_code(form, scores, work.tile)
    lines = [*full, *work.ahead, *start, *loop_code(form, work, after)]
    page_bytes = work.traffic.page_bytes + NUMBER_BYTES
    return StageFunction(
        "score_pages",
        Stage.SCORING,
        f"Scores, and the best {form.kept} candidates: each tile is a segment.",
        work.body,
        lines,
        result="best",
        traffic=replace(work.traffic, page_bytes=page_bytes),
    )


def select_stage(
    node: Node, form: RowForm, *, pages: int, scores: ScoreMemory, chosen: str
) -> StageFunction:
    """Select from a block of scores of so many pages, or from the best of them: marks in memory."""
    body = form.body()
    if form.cut.selection is Selection.SEGMENTS:
        given = {"best": f"int64 [{form.kept}]: ranks of the best candidates"}
        lines = mark_segment_code(
            node, form, body, memory=scores, chosen=chosen, tile=form.tiling.row_tile
        )
        page_bytes = MARK_BYTES + NUMBER_BYTES
    else:
        given = {"scores": f"float32 [{pages}]"}
        emit = select_block_code if form.merge is Merge.MEMORY else select_tree_code
        lines = emit(node, form, body, scores="scores", pages=pages, chosen=chosen)
        page_bytes = MARK_BYTES
    purpose = f"{node.op.name}: marks of the pages that are chosen."
    traffic = Traffic(Stage.SELECTION, page_bytes=page_bytes)
    return StageFunction(
        "select_pages", Stage.SELECTION, purpose, body, lines, given, traffic=traffic
    )


def load_stage(node: Node, form: RowForm, *, scores: str) -> tuple[StageFunction, int]:
    """Load the scores that an earlier kernel left as one block; return its number of pages, too.

    In two levels: the best of them.
    """
    if form.target is None:
        raise InternalError("scores", "no target", "a whole row", "report it")
    body = form.body()
    pages = padded(form.target.pages)
    body.need(scores, "float32 [rows, pages, 1, 1]")
    if form.cut.selection is Selection.SEGMENTS:
        memory = ScoreMemory(scores, is_logical=True)
        lines = best_in_code(form, body, memory, form.tiling.row_tile)
        purpose, result, pages = f"The best {form.kept} candidates of a row.", "best", 0
    else:
        lines = code(f"""
            own = tl.arange(0, {pages})
            place = {row_start(body, scores)} + {form.page_of("own")}
            scores = tl.load(place, mask=own < {form.num_own}, other=0).to(tl.float32)
        """)
        purpose, result = f"Scores of at most {pages} pages: {node.inputs[0].op.name}.", "scores"
    traffic = Traffic(Stage.SELECTION, page_bytes=NUMBER_BYTES)
    function = StageFunction(
        "load_scores", Stage.SELECTION, purpose, body, lines, result=result, traffic=traffic
    )
    return function, pages


def attend_stages(
    form: RowForm, *, chosen: str | None, is_listed: bool = True
) -> list[StageFunction]:
    """Attend, and merge members if that goes over queues."""
    body = form.body()
    blocks = AttendBlocks.of(form)
    lines = attend_code(form, body, chosen=chosen, is_listed=is_listed)
    purpose = f"Softmax over {'listed' if is_listed else 'all'} pages."
    traffic = attend_traffic(form.sizes, is_listed=is_listed, loads_latents_once=True)
    if form.merge is Merge.IPCQ:
        result = "largest, total, weighted"
        attending = StageFunction(
            "attend_pages", Stage.ATTENTION, purpose, body, lines, result=result, traffic=traffic
        )
        return [attending, _merge_stage(form, blocks.values)]
    ending = end_code(form, body)
    lines += code(f"value_channel = tl.arange(0, {blocks.values})[None, :]") + ending
    return [StageFunction("attend_pages", Stage.ATTENTION, purpose, body, lines, traffic=traffic)]


def _merge_stage(form: RowForm, channels: int) -> StageFunction:
    body = form.body()
    heads = form.sizes.query_heads
    given = {
        "largest": f"float32 [{heads}, 1]: logits of the member",
        "total": f"float32 [{heads}, 1]: of weights relative to it",
        "weighted": f"float32 [{heads}, {channels}]: values by these weights",
    }
    lines = merge_tree_code(form, body, channels=channels)
    purpose = "The attention of a row from those of its members, up a tree."
    return StageFunction("merge_members", Stage.MERGE, purpose, body, lines, given)


def emit_row_kernel(name: str, form: RowForm, stages: Sequence[StageFunction]) -> Emitted:
    """Emit one kernel that calls the stages in order; their functions are ahead of it."""
    body = Body()
    body.statements += form.preamble(body)
    functions = [stage.function() for stage in stages]
    for stage, function in zip(stages, functions, strict=True):
        for argument, holds in stage.body.arguments.items():
            if argument in function.arguments:
                body.need(argument, holds)
        body.statements += stage.call()
    what = "row" if form.part is None else "row and member"
    kernel = Kernel(
        name,
        Grid.ROW_MEMBERS,
        tuple(body.arguments),
        stages=tuple(dict.fromkeys(stage.stage for stage in stages)),
        traffic=tuple(stage.traffic for stage in stages if stage.traffic is not None),
    )
    purpose = f"All of a row in one program: a program for each {what}."
    whole = Function(name, purpose, body.arguments, body.statements)
    return Emitted(kernel, (*functions, whole))
