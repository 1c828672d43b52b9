"""What a step leaves for the next one: state by page."""

from collections.abc import Mapping

from tilewright.attention.codegen.expression.leaf_loads import (
    load_saved,
    memory_holds,
    saved_stop,
    state_memory,
)
from tilewright.attention.codegen.expression.side import SideEmitter
from tilewright.attention.codegen.expression.stored import store
from tilewright.attention.codegen.plan.rounds import is_row_op
from tilewright.attention.codegen.source.builder import Operand
from tilewright.attention.codegen.source.row import row_start
from tilewright.attention.graph import Graph, Node, Side, StateVar, StateWrite
from tilewright.attention.ops import leaf


def writes_by_round(graph: Graph, rounds: Mapping[Node, int]) -> dict[int, list[StateWrite]]:
    """Find the round whose page kernel can write each state: the first that has its value."""
    found: dict[int, list[StateWrite]] = {}
    for write in graph.state_writes:
        found.setdefault(rounds[write.value] + is_row_op(write.value), []).append(write)
    return found


def store_state(graph: Graph, write: StateWrite, emitter: SideEmitter) -> None:
    """Emit the store of a state variable for the next step.

    The next step's state is other memory than the last one's, since a later kernel may read that.
    So a page that this step does not advance is copied, if an earlier step has saved it. What an
    op remembers advances in every complete page, and in the unfinished one if the flow
    summarizes it.
    """
    (state,) = (item for item in graph.states if item.name == write.target)
    body, value = emitter.body, emitter.value(write.value)
    memory = body.need(state_memory(write.target, "next"), memory_holds(state.type))
    if state.is_saved:
        body.need("state_pages", "int32 [rows]: pages from 0 on whose state this step advances")
        stop = body.once("state_stop", "tl.load(state_pages + row)")
        value = _carried(graph, write, value, state, emitter)
        has_state = f"there & (page < tl.maximum({stop}, {saved_stop(body)}))"
    else:
        has_state = "there" if graph.partial_pages else "there & (page < num_full)"
    store(body, value, state.type, row_start(body, memory), "page", has_state)


def _carried(
    graph: Graph, write: StateWrite, value: Operand, state: StateVar, emitter: SideEmitter
) -> Operand:
    """Emit the value of pages that advance, and of other pages what they had before the step."""
    body = emitter.body
    reads = (
        node
        for node in graph.nodes(Side.INDEXER)
        if isinstance(node.op, leaf.StateRead) and node.op.variable == write.target
    )
    known = next(reads, None)
    if known is not None:
        before = emitter.value(known).name
    else:
        before = body.new_name(f"{write.target}_before")
        body.add(f"{before} = {load_saved(state, body)}")
    name = body.new_name(f"{write.target}_after")
    body.add(f"{name} = tl.where(page < state_stop, {value.name}, {before})")
    return Operand(name, state.type)
