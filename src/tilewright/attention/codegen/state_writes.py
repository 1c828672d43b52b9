"""What a step leaves for the next one: state by page."""

from collections.abc import Mapping

from tilewright.attention.codegen.leaf_loads import memory_holds, state_memory
from tilewright.attention.codegen.rounds import is_row_op
from tilewright.attention.codegen.row_text import row_start
from tilewright.attention.codegen.side import SideEmitter
from tilewright.attention.codegen.stored import store
from tilewright.attention.graph import Graph, Node, StateWrite

__all__ = ("store_state", "writes_by_round")


def writes_by_round(graph: Graph, rounds: Mapping[Node, int]) -> dict[int, list[StateWrite]]:
    """The round whose page kernel can write each state: the first one that has its value."""
    found: dict[int, list[StateWrite]] = {}
    for write in graph.state_writes:
        found.setdefault(rounds[write.value] + is_row_op(write.value), []).append(write)
    return found


def store_state(graph: Graph, write: StateWrite, emitter: SideEmitter) -> None:
    """Pages that are complete have state; the one being filled only if the flow asks for it.

    The next step's state is other memory than the last one's, since a later kernel may read that.
    """
    (target,) = (item.type for item in graph.states if item.name == write.target)
    body, value = emitter.body, emitter.value(write.value)
    memory = body.need(state_memory(write.target, "next"), memory_holds(target))
    has_state = "there" if graph.partial_pages else "there & (page < num_full)"
    store(body, value, target, row_start(body, memory), "page", has_state)
