"""Expressions of leaves that are neither pools nor inputs: parameters, state, masses."""

from tilewright.attention.codegen.expression.stored import computed, load_packed, packed_bytes
from tilewright.attention.codegen.plan.slice_loads import Window, window_of
from tilewright.attention.codegen.source.builder import Body, load_source
from tilewright.attention.codegen.source.row import row_start, table_start
from tilewright.attention.graph import DType, Graph, Inherit, Node, StateVar, ValueType
from tilewright.attention.ops import leaf


def table_of(node: Node, body: Body) -> str:
    """Take the argument that holds a learned parameter."""
    name = _variable(node).replace(".", "_")
    sizes = ", ".join(map(str, node.type.shape))
    return body.need(f"{name}_table", f"{node.type.dtype} [{sizes}]: of the layer that runs")


def load_parameter(node: Node, body: Body) -> str | None:
    """Load a table, or a part of one, as a block; return None for other nodes."""
    window = window_of(node)
    if window is None or not isinstance(window.source.op, leaf.ParameterRead):
        return None
    table, whole = table_of(window.source, body), window.source.type
    place = body.place(table, "", node.type.shape, whole.shape, window.skip)
    return _loaded(place, body.inside(node.type.shape), 0.0, whole.dtype)


def load_pool(
    node: Node,
    window: Window,
    condition: str,
    initial: float,
    body: Body,
    *,
    as_stored: bool = False,
) -> str:
    """Load a field of the pools, ``initial`` where the condition does not hold."""
    name, whole = _variable(window.source).replace(".", "_"), window.source.type
    sizes = ", ".join(map(str, whole.shape))
    halves = ", two a byte" if whole.dtype is DType.INT4 else ""
    pool = body.need(f"{name}_pool", f"{whole.dtype} [KV heads, blocks, {sizes}]{halves}")
    body.need("num_blocks", "blocks of the pools")
    table_start(body)
    if whole.dtype is DType.INT4:
        entry = "(head * num_blocks + block)"
        return load_entry(pool, entry, node, window, [condition], initial, body)
    start = body.once(f"{pool}_head", f"{pool} + head * num_blocks * {whole.num_elements}")
    of_pool = (node, window, [condition], initial, body)
    return load_entry(start, "block", *of_pool, as_stored=as_stored)


def state_memory(name: str, when: str) -> str:
    """Name the argument of a state variable: ``state`` as it was, ``next`` as it will be."""
    return f"{name.replace('.', '_')}_{when}"


def mass_memory(when: str) -> str:
    return f"attention_mass_{when}"


def memory_holds(value: ValueType) -> str:
    """Say what memory with an entry for each page of each row holds."""
    sizes = ", ".join(map(str, value.shape))
    if value.dtype is DType.INT4:
        return f"int4 [rows, pages, {sizes}], two a byte"
    dtype = "int8" if value.dtype is DType.BOOL else value.dtype
    return f"{dtype} [rows, pages, {sizes}]"


def saved_stop(body: Body) -> str:
    """Emit how many pages of the row have state that earlier steps saved; return its name."""
    body.need("saved_pages", "int32 [rows]: pages from 0 on whose state earlier steps saved")
    return body.once("saved_stop", "tl.load(saved_pages + row)")


def load_saved(state: StateVar, body: Body) -> str:
    """Load the saved pages that this step does not advance."""
    memory = body.need(state_memory(state.name, "state"), memory_holds(state.type))
    node = Node(leaf.StateRead(state.name), (), state.type, "")
    window = Window(node, 0, 0, state.type.shape[1])
    condition = f"there & (page >= state_stop) & (page < {saved_stop(body)})"
    return load_entry(row_start(body, memory), "page", node, window, [condition], 0.0, body)


class KeptLoads:
    """What a request keeps between steps, and what was learned; None for other nodes."""

    def __init__(self, graph: Graph) -> None:
        self._states = {item.name: item for item in graph.states}
        self._written = {write.target for write in graph.field_writes}

    def __call__(self, node: Node, body: Body) -> str | None:
        match node.op:
            case leaf.AttentionMass():
                return _load_mass(node, mass_memory("state"), body)
            case leaf.PromptMass(window=window):
                return _load_mass(node, f"prompt_mass_{window}_state", body)
        part = window_of(node)
        if part is not None and isinstance(part.source.op, leaf.StateRead):
            return self._load_state(node, part, self._states[_variable(part.source)], body)
        return load_parameter(node, body)

    def _load_state(self, node: Node, window: Window, state: StateVar, body: Body) -> str:
        """Load what the last step wrote; a page that it did not write has its first value."""
        memory = body.need(state_memory(state.name, "state"), memory_holds(window.source.type))
        if state.is_saved:
            kept = f"there & (page < {saved_stop(body)})"
        else:
            body.need("kept_pages", "int32 [requests]: pages whose state the last step wrote")
            kept = "there & (page < tl.load(kept_pages + request))"
        if state.name in self._written:  # a page that is complete with this very token begins anew
            kept += " & (page < num_pages - 1 + (num_pages - num_full))"
        starts = state.name in self._written or state.inherit is Inherit.SNAPSHOT
        begun = row_start(body, memory)
        initial = 0.0 if starts else state.initial
        found = load_entry(begun, "page", node, window, [kept], initial, body)
        if not starts:
            return found
        return f"tl.where({kept}, {found}, {self._start(node, window, state, body)})"

    def _start(self, node: Node, window: Window, state: StateVar, body: Body) -> str:
        return load_pool(node, window, "(page < num_full)", state.initial, body)


def _load_mass(node: Node, memory: str, body: Body) -> str:
    body.need(memory, f"{memory_holds(node.type)}: 0 where nothing is known")
    place = body.place(row_start(body, memory), "page", node.type.shape, node.type.shape)
    return _loaded(place, ["there", *body.inside(node.type.shape)], 0.0, DType.FLOAT32)


def load_entry(
    memory: str,
    entry: str,
    node: Node,
    window: Window,
    conditions: list[str],
    initial: float,
    body: Body,
    *,
    as_stored: bool = False,
) -> str:
    """Load part of an entry of memory, in the type that it is computed with unless as stored."""
    whole = window.source.type
    conditions = [*conditions, *body.inside(node.type.shape)]
    if whole.dtype is DType.INT4:
        flat = body.flat(node.type.shape, whole.shape, window.skip)
        mask = " & ".join(conditions)
        return load_packed(memory, entry, packed_bytes(whole), flat, mask, initial)
    place = body.place(memory, entry, node.type.shape, whole.shape, window.skip)
    return _loaded(place, conditions, initial, whole.dtype, as_stored=as_stored)


def _loaded(
    place: str, conditions: list[str], initial: float, dtype: DType, *, as_stored: bool = False
) -> str:
    other = repr(float(initial)) if dtype.is_float else str(int(initial))
    loaded = load_source(place, conditions, other)
    return loaded if as_stored else computed(loaded, dtype)


def _variable(node: Node) -> str:
    return str(getattr(node.op, "variable", ""))
