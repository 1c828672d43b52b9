"""Loads and stores: from what memory holds to computed values, and back."""

from dataclasses import replace

from tilewright.attention.codegen.plan.slice_loads import Window, window_of
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.source.builder import (
    Body,
    Operand,
    Shape,
    load_source,
    store_source,
)
from tilewright.attention.codegen.source.row import row_start, table_start
from tilewright.attention.graph import FORMAT, DType, Graph, Inherit, Node, StateVar, ValueType
from tilewright.attention.ops import leaf


def holds(kind: ValueType, axes: str) -> str:
    """Say what memory of values holds: bools take a byte, halves of bytes lie two in one."""
    sizes = ", ".join([*([axes] if axes else []), *map(str, kind.shape)])
    dtype = "int8" if kind.dtype is DType.BOOL else kind.dtype
    packing = ", two a byte" if kind.dtype is DType.INT4 else ""
    return f"{dtype} [{sizes}]{packing}"


def scratch_holds(node: Node) -> str:
    """Say what scratch memory of a value holds."""
    axes = "rows" if node.type.format is FORMAT.BATCHED else "rows, pages"
    return holds(replace(node.type, dtype=node.type.dtype.computed), axes)


def array_place(
    name: str, content: str, shape: Shape, body: Body, *, per_page: bool
) -> tuple[str, list[str]]:
    """Take an array of a value per row or per page; return pointers to it, and which are there."""
    start = row_start(body, body.need(name, content))
    place = body.place(start, "page" if per_page else "", shape, shape)
    return place, [*(["there"] if per_page else []), *body.inside(shape)]


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


def load_stored(
    memory: str, entry: str, window: Window, conditions: list[str], body: Body, initial: float = 0.0
) -> str:
    """Load part of an entry as it is stored, ``initial`` where a condition does not hold."""
    whole, conditions = window.source.type, [*conditions, *body.inside(window.shape)]
    place = body.place(memory, entry, window.shape, whole.shape, window.skip)
    return load_source(place, conditions, literal(initial, whole.dtype))


def load_entry(
    memory: str, entry: str, window: Window, conditions: list[str], body: Body, initial: float = 0.0
) -> str:
    """Load part of an entry of memory, in the type that it is computed with.

    Of halves of bytes the lower one comes first.
    """
    whole = window.source.type
    if whole.dtype is not DType.INT4:
        loaded = load_stored(memory, entry, window, conditions, body, initial)
        return computed(loaded, whole.dtype)
    mask = " & ".join([*conditions, *body.inside(window.shape)])
    flat = body.flat(window.shape, whole.shape, window.skip)
    place = f"{memory} + {entry} * {packed_bytes(whole)} + ({flat}) // 2"
    loaded = f"tl.load({place}, mask={mask}, other=0).to(tl.int32)"
    signed = f"((({loaded} >> (({flat}) % 2 * 4)) & 15) ^ 8) - 8"
    return signed if initial == 0 else f"tl.where({mask}, {signed}, {int(initial)})"


def literal(value: float, dtype: DType) -> str:
    """Return a number in the kind of a type."""
    return repr(float(value)) if dtype.is_float else str(int(value))


def pool_entry(window: Window, body: Body) -> tuple[str, str]:
    """Return where a field of the row's KV head begins, and the number of a page's entry."""
    pool = need_pool(window.name, window.source.type, body)
    body.need("num_blocks")
    table_start(body)
    if window.source.type.dtype is DType.INT4:
        return pool, "(head * num_blocks + block)"
    size = window.source.type.num_elements
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
    zero = literal(0, window.source.type.dtype)
    return _load_part(table_of(window.source, body), window, body, zero)


def load_input(window: Window, body: Body) -> str:
    """Load the query, or a part of it."""
    given = body.need(f"{window.name}_in", holds(window.source.type, "requests, KV heads"))
    return _load_part(row_start(body, given), window, body, "0")


def _load_part(start: str, window: Window, body: Body, other: str) -> str:
    whole = window.source.type
    place = body.place(start, "", window.shape, whole.shape, window.skip)
    return computed(load_source(place, body.inside(window.shape), other), whole.dtype)


def load_saved(state: StateVar, body: Body) -> str:
    """Load the saved pages that this step does not advance."""
    memory = need_state(state.name, "state", state.type, body)
    window = Window(Node(leaf.StateRead(state.name), (), state.type, ""), state.type.shape)
    condition = f"there & (page >= state_stop) & (page < {saved_stop(body)})"
    return load_entry(row_start(body, memory), "page", window, [condition], body)


def load_kept(graph: Graph, node: Node, body: Body) -> str | None:
    """Load what a request keeps between steps, and what was learned; None for other nodes."""
    if isinstance(node.op, leaf.AttentionMass | leaf.PromptMass):
        memory = mass_memory("state")
        if isinstance(node.op, leaf.PromptMass):
            memory = f"prompt_mass_{node.op.window}_state"
        body.need(memory, f"{holds(node.type, 'rows, pages')}: 0 where nothing is known")
        whole = Window(node, node.type.shape)
        return load_entry(row_start(body, memory), "page", whole, ["there"], body)
    window = window_of(node)
    if window is not None and isinstance(window.source.op, leaf.StateRead):
        return _load_state(graph, window, window.source.op.variable, body)
    return load_parameter(node, body)


def _load_state(graph: Graph, window: Window, name: str, body: Body) -> str:
    """Load what the last step wrote; a page that it did not write has its first value."""
    (state,) = (item for item in graph.states if item.name == name)
    memory = need_state(state.name, "state", window.source.type, body)
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
    pool, full = pool_entry(window, body), ["(page < num_full)"]
    return f"tl.where({kept}, {found}, {load_entry(*pool, window, full, body, state.initial)})"


ROUNDINGS = {DType.FLOAT8_E4M3: "round_to_e4m3", DType.FLOAT8_E5M2: "round_to_e5m2"}
_TL_NAMES = {DType.FLOAT8_E4M3: "float8e4nv", DType.FLOAT8_E5M2: "float8e5"}


def tl_name(dtype: DType) -> str:
    """Return the name that kernels have for a type that is stored in whole bytes."""
    return _TL_NAMES.get(dtype, dtype.value)


def packed_bytes(value: ValueType) -> int:
    """Count the bytes of one entry whose elements are halves of bytes."""
    return -(-value.num_elements // 2)


def zero_of(dtype: DType) -> str:
    """Return 0 in the kind of a type: whole numbers do not become floats of one byte."""
    return "0.0" if dtype in ROUNDINGS else "0"


def computed(loaded: str, dtype: DType) -> str:
    """Convert what was loaded to the type that it is computed with."""
    if dtype is DType.BOOL:
        return f"{loaded} != 0"
    return f"{loaded}.to(tl.{dtype.computed})"


def converted(text: str, stored: DType, wanted: DType) -> str:
    """Convert a value to the type that it is multiplied in."""
    return text if stored is wanted else f"{text}.to(tl.{wanted})"


def store(
    body: Body, value: Operand, target: ValueType, memory: str, entry: str, condition: str = ""
) -> None:
    """Write a value to an entry of memory in the stored type of ``target``, rounded once."""
    conditions = [condition] if condition else []
    if target.dtype is DType.INT4:
        _store_packed(body, value, target, memory, entry, conditions)
        return
    place = body.place(memory, entry, target.shape, target.shape)
    conditions += body.inside(target.shape)
    body.add(store_source(place, _narrow(value, target.dtype), conditions))


def _narrow(value: Operand, dtype: DType) -> str:
    """Convert what the type holds exactly, so that no rounding is left to the store."""
    held = _held(value.name, dtype)
    if dtype in ROUNDINGS:
        return f"{held}.to(tl.{tl_name(dtype)})"
    return f"{held}.to(tl.int8)" if dtype in (DType.INT8, DType.BOOL) else held


def rounded(value: Operand, target: ValueType) -> str:
    """Round a value as it will be read back from memory of the type of ``target``."""
    rows, columns = target.shape
    name = value.name
    if value.type.shape != target.shape:
        name = f"tl.broadcast_to({name}, (1, {padded(rows)}, {padded(columns)}))"
    return rounded_float(name, target.dtype)


def rounded_float(name: str, dtype: DType) -> str:
    """Round to the steps of a type and into its range, in the type that is computed with."""
    if dtype in (DType.FLOAT16, DType.BFLOAT16):
        return f"{name}.to(tl.{dtype}).to(tl.float32)"
    return _held(name, dtype)


def integer_range(dtype: DType) -> tuple[int, int]:
    """Return the least and the largest integer of a type."""
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


def _held(name: str, dtype: DType) -> str:
    """Hold a value in the range of a type of one byte or less, and in its steps."""
    if dtype in ROUNDINGS:
        return f"{ROUNDINGS[dtype]}({name})"
    if dtype in (DType.INT8, DType.INT4):
        low, high = integer_range(dtype)
        return f"tl.minimum(tl.maximum({name}, {low}), {high})"
    return name


def _store_packed(
    body: Body, value: Operand, target: ValueType, memory: str, entry: str, conditions: list[str]
) -> None:
    """Store two neighbours of the flat entry in a byte; an odd one out has 0 beside it."""
    rows, columns = target.shape
    count = packed_bytes(target)
    byte = body.index(2, count)
    halves = (padded(rows), padded(columns))
    spread = f"({value.name}.shape[0], {halves[0]}, {halves[1]})"
    held = f"tl.broadcast_to({_narrow(value, DType.INT4)}, {spread})"
    flat = f"tl.reshape({held}, ({value.name}.shape[0], 1, {halves[0] * halves[1]}))"
    whole = body.set_new("codes", f"{flat} & 15")
    parts = []
    for half, wanted in enumerate(("low", "high")):
        name = body.new_name(wanted)
        place = body.set_new("place", f"tl.minimum({byte} * 2 + {half}, {rows * columns - 1})")
        source = f"{place} // {columns} * {halves[1]} + {place} % {columns}"
        extents = f"({value.name}.shape[0], 1, {padded(count)})"
        body.add(f"{name} = tl.gather({whole}, tl.broadcast_to({source}, {extents}), 2)")
        parts.append(name)
    low, high = parts
    if rows * columns % 2:
        high = f"tl.where({byte} * 2 + 1 < {rows * columns}, {high}, 0)"
    place = body.place(memory, entry, (1, count), (1, count))
    conditions += body.inside((1, count))
    body.add(store_source(place, f"({low} | ({high} << 4)).to(tl.uint8)", conditions))
