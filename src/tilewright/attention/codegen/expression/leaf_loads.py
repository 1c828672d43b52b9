"""Expressions of leaves: pools, inputs, parameters, state, masses; and what memory holds."""

from dataclasses import replace

from tilewright.attention.codegen.expression.stored import computed, load_packed, packed_bytes
from tilewright.attention.codegen.plan.slice_loads import Window, window_of
from tilewright.attention.codegen.source.builder import Body, load_source
from tilewright.attention.codegen.source.row import row_start, table_start
from tilewright.attention.graph import (
    FORMAT,
    DType,
    Graph,
    Inherit,
    Node,
    StateVar,
    ValueType,
)
from tilewright.attention.ops import feedback, leaf


def holds(kind: ValueType, axes: str) -> str:
    """Say what memory of values holds: bools take a byte, halves of bytes lie two in one."""
    sizes = ", ".join(map(str, kind.shape))
    dtype = "int8" if kind.dtype is DType.BOOL else kind.dtype
    return f"{dtype} [{axes}{', ' if axes else ''}{sizes}]" + (
        ", two a byte" if kind.dtype is DType.INT4 else ""
    )


def scratch_holds(node: Node) -> str:
    """Say what scratch memory of a value holds."""
    axes = "rows" if node.type.format is FORMAT.BATCHED else "rows, pages"
    return holds(replace(node.type, dtype=node.type.dtype.computed), axes)


def state_memory(name: str, when: str) -> str:
    """Name the argument of a state variable: ``state`` as it was, ``next`` as it will be."""
    return f"{name.replace('.', '_')}_{when}"


def mass_memory(when: str) -> str:
    return f"attention_mass_{when}"


def need_pool(name: str, kind: ValueType, body: Body) -> str:
    return body.need(f"{name}_pool", holds(kind, "KV heads, blocks"))


def need_state(name: str, when: str, kind: ValueType, body: Body) -> str:
    """Take memory with an entry for each page of each row."""
    return body.need(state_memory(name, when), holds(kind, "rows, pages"))


def saved_stop(body: Body) -> str:
    """Emit how many pages of the row have state that earlier steps saved; return its name."""
    body.need("saved_pages")
    return body.once("saved_stop", "tl.load(saved_pages + row)")


def load(place: str, conditions: list[str], dtype: DType, initial: float = 0.0) -> str:
    """Load elements as they are stored, ``initial`` where a condition does not hold."""
    other = repr(float(initial)) if dtype.is_float else str(int(initial))
    return load_source(place, conditions, other)


def load_entry(
    memory: str, entry: str, window: Window, conditions: list[str], body: Body, initial: float = 0.0
) -> str:
    """Load part of an entry of memory, in the type that it is computed with."""
    whole, conditions = window.whole, [*conditions, *body.inside(window.shape)]
    if whole.dtype is DType.INT4:
        flat = body.flat(window.shape, whole.shape, window.skip)
        mask = " & ".join(conditions)
        return load_packed(memory, entry, packed_bytes(whole), flat, mask, initial)
    place = body.place(memory, entry, window.shape, whole.shape, window.skip)
    return computed(load(place, conditions, whole.dtype, initial), whole.dtype)


def pool_entry(window: Window, body: Body) -> tuple[str, str]:
    """Return where a field of the row's KV head begins, and the number of a page's entry."""
    pool = need_pool(window.name, window.whole, body)
    body.need("num_blocks")
    table_start(body)
    if window.whole.dtype is DType.INT4:
        return pool, "(head * num_blocks + block)"
    size = window.whole.num_elements
    return body.once(f"{pool}_head", f"{pool} + head * num_blocks * {size}"), "block"


def token_condition(window: Window, body: Body) -> str:
    """Return the condition of the tokens of a field that are there."""
    token = body.index(1, window.shape[0])
    return f"({token}{f' + {window.row}' if window.row else ''} < page_tokens)"


def table_of(source: Node, body: Body) -> str:
    """Take the argument that holds a learned parameter."""
    table = f"{Window(source, ()).name}_table"
    sizes = ", ".join(map(str, source.type.shape))
    return body.need(table, f"{source.type.dtype} [{sizes}]: of the layer that runs")


def load_parameter(node: Node, body: Body) -> str | None:
    """Load a table, or a part of one, as a block; return None for other nodes."""
    window = window_of(node)
    if window is None or not isinstance(window.source.op, leaf.ParameterRead):
        return None
    whole = window.whole
    place = body.place(table_of(window.source, body), "", window.shape, whole.shape, window.skip)
    return computed(load(place, body.inside(window.shape), whole.dtype), whole.dtype)


def load_input(window: Window, body: Body) -> str:
    """Load the query, or a part of it."""
    whole = window.whole
    given = body.need(f"{window.name}_in", holds(whole, "requests, KV heads"))
    start = row_start(body, given)
    place = body.place(start, "", window.shape, whole.shape, window.skip)
    return computed(load_source(place, body.inside(window.shape)), whole.dtype)


def load_saved(state: StateVar, body: Body) -> str:
    """Load the saved pages that this step does not advance."""
    memory = need_state(state.name, "state", state.type, body)
    window = Window(Node(leaf.StateRead(state.name), (), state.type, ""), state.type.shape)
    condition = f"there & (page >= state_stop) & (page < {saved_stop(body)})"
    return load_entry(row_start(body, memory), "page", window, [condition], body)


def load_kept(graph: Graph, node: Node, body: Body) -> str | None:
    """Load what a request keeps between steps, and what was learned; None for other nodes."""
    match node.op:
        case feedback.AttentionMass():
            return _load_mass(node, mass_memory("state"), body)
        case feedback.PromptMass(window=queries):
            return _load_mass(node, f"prompt_mass_{queries}_state", body)
    window = window_of(node)
    if window is not None and isinstance(window.source.op, leaf.StateRead):
        name = window.source.op.variable
        (state,) = (item for item in graph.states if item.name == name)
        return _load_state(graph, window, state, body)
    return load_parameter(node, body)


def _load_state(graph: Graph, window: Window, state: StateVar, body: Body) -> str:
    """Load what the last step wrote; a page that it did not write has its first value."""
    memory = need_state(state.name, "state", window.whole, body)
    if state.is_saved:
        kept = f"there & (page < {saved_stop(body)})"
    else:
        body.need("kept_pages")
        kept = "there & (page < tl.load(kept_pages + request))"
    is_written = state.name in {write.target for write in graph.field_writes}
    if is_written:  # a page that is complete with this very token begins anew
        kept += " & (page < num_pages - 1 + (num_pages - num_full))"
    begun = row_start(body, memory)
    if not is_written and state.inherit is not Inherit.SNAPSHOT:
        return load_entry(begun, "page", window, [kept], body, state.initial)
    found = load_entry(begun, "page", window, [kept], body)
    start = load_entry(
        *pool_entry(window, body), window, ["(page < num_full)"], body, state.initial
    )
    return f"tl.where({kept}, {found}, {start})"


def _load_mass(node: Node, memory: str, body: Body) -> str:
    body.need(memory, f"{holds(node.type, 'rows, pages')}: 0 where nothing is known")
    place = body.place(row_start(body, memory), "page", node.type.shape, node.type.shape)
    conditions = ["there", *body.inside(node.type.shape)]
    return computed(load(place, conditions, DType.FLOAT32), DType.FLOAT32)
