"""From a flow to its graph: run both methods once and settle what is a field and what is state."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from tilewright.attention.abs.argument import FieldMap, OutputSlot
from tilewright.attention.abs.context_base import CacheContext, IndexerContext, PageLocation
from tilewright.attention.abs.in_place import resolve_in_place
from tilewright.attention.abs.tensor import Parameter, vTensor
from tilewright.attention.abs.trace import Trace
from tilewright.attention.abs.value import Value
from tilewright.attention.flow.flow import FieldSpec, FlowBase
from tilewright.attention.flow.lint import Lint, lint_flow
from tilewright.attention.flow.loader import fix_of, raising_line
from tilewright.attention.graph import (
    FORMAT,
    Field,
    FieldWrite,
    Geometry,
    Graph,
    Inherit,
    Leading,
    Node,
    Scope,
    Side,
    StateVar,
    ValueType,
    keep,
    rebuild,
    verify_graph,
)
from tilewright.attention.ops.leaf import Constant, FieldRead, StateRead
from tilewright.errors import (
    FieldError,
    FlowError,
    FlowInitError,
    StateError,
    TerminalError,
    TilewrightError,
)

AXES = 2  # of an input: rows and columns
Result = TypeVar("Result")


class TracedFlow(NamedTuple):
    """A graph, and what was doubtful on the way to it."""

    graph: Graph
    warnings: tuple[Lint, ...]


def trace_flow(flow: FlowBase, geometry: Geometry, *, name: str | None = None) -> Graph:
    """The graph of a flow for one geometry, verified."""
    return examine_flow(flow, geometry, name=name).graph


def examine_flow(flow: FlowBase, geometry: Geometry, *, name: str | None = None) -> TracedFlow:
    """The graph of a flow, and lint warnings. Raises `FlowError`s with flow, method and line."""
    named = name or type(flow).__name__
    if flow.kind is not geometry.kind:
        found, expected = f"a geometry of kind {geometry.kind}", f"kind {flow.kind}"
        fix = "use Geometry.gqa for vFlow and Geometry.mla for vFlowMLA"
        raise FlowInitError(f"flow {named!r}", found, expected, fix, flow=named)
    _guarded(named, "create_cache", flow.initialize_for, geometry)
    inputs = own_inputs(flow, named)
    variables = _variables(flow, geometry, inputs)
    # by the attribute that holds them; those of op objects are named at first use
    held = {item: name for name, item in vars(flow).items() if isinstance(item, Parameter)}
    parameters = {item: f"param.{name}" for item, name in held.items()}
    cache = Trace(named, "forward_cache", Scope(Side.CACHE, geometry, variables), parameters)
    _trace_cache(flow, cache)
    scope = Scope(Side.INDEXER, geometry, variables)
    indexer = Trace(named, "forward_indexer", scope, parameters)
    _trace_indexer(flow, indexer, tuple(inputs))
    read_again = resolve_in_place(indexer)
    graph = _settle(flow, cache, indexer, ("q", *inputs))
    verify_graph(graph)
    return TracedFlow(graph, lint_flow(graph, cache, indexer, read_again))


def own_inputs(flow: FlowBase, name: str) -> dict[str, tuple[int, int]]:
    """Return what ``create_inputs`` of a flow gives; what is no shapes by name is refused."""
    found = _guarded(name, "create_inputs", flow.create_inputs)
    if isinstance(found, dict) and all(map(_is_input, found.items())):
        return found
    where, fix = f"flow {name!r}, create_inputs", "return a dict of (rows, columns)"
    expected = "a shape of rows and columns for each name"
    raise FlowInitError(where, f"{found!r}", expected, fix, flow=name, method="create_inputs")


def _is_input(item: tuple[object, object]) -> bool:
    name, shape = item
    if not isinstance(name, str) or not isinstance(shape, tuple | list) or len(shape) != AXES:
        return False
    return all(isinstance(size, int) and size > 0 for size in shape)


def _variables(
    flow: FlowBase, geometry: Geometry, own: Mapping[str, tuple[int, int]]
) -> dict[str, ValueType]:
    variables = {
        name: ValueType(FORMAT.PAGED, Leading.PAGES, shape, geometry.read_dtype)
        for name, shape in geometry.reserved_fields.items()
    }
    variables |= {name: spec.value_type(geometry) for name, spec in _specs(flow).items()}
    slots = (flow.request_specs or {}).items()
    variables |= {name: spec.value_type(geometry, of_request=True) for name, spec in slots}
    inputs = {"q": (geometry.query_heads, geometry.key_dim), **own}
    for name, shape in inputs.items():
        if name in variables:
            raise FieldError("create_inputs", f"an input {name!r}", "a new name", "rename it")
        kind = ValueType(FORMAT.BATCHED, Leading.ONE, tuple(shape), geometry.query_dtype)
        variables[name] = kind
    return variables


def _trace_cache(flow: FlowBase, trace: Trace) -> None:
    fields, context = _register_fields(trace, flow), CacheContext(trace)
    call = partial(flow.forward_cache, fields, loc=PageLocation(), ctx=context)
    _guarded(trace.flow, trace.method, call)


def _trace_indexer(flow: FlowBase, trace: Trace, inputs: tuple[str, ...]) -> None:
    query = trace.scope.variables["q"]
    trace.register("q", vTensor((0, *query.shape), query.dtype, None, query.format))
    slot = OutputSlot(trace)
    trace.register("o", slot)
    fields = _register_fields(trace, flow)
    q = Value(trace, trace.add_input("q"))
    context = IndexerContext(trace)
    context.inputs = {extra: Value(trace, trace.add_input(extra)) for extra in inputs}
    _guarded(trace.flow, trace.method, flow.forward_indexer, q, slot, fields, context)


def _register_fields(trace: Trace, flow: FlowBase) -> FieldMap:
    names = (*trace.scope.geometry.reserved_fields, *_specs(flow), *(flow.request_specs or {}))
    for name in names:
        kind = trace.scope.variables[name]
        trace.register(name, vTensor((0, *kind.shape), kind.dtype, None, kind.format))
    return FieldMap(trace, names)


def _settle(flow: FlowBase, cache: Trace, indexer: Trace, inputs: tuple[str, ...]) -> Graph:
    name, geometry, variables = indexer.flow, indexer.scope.geometry, indexer.scope.variables
    if indexer.output is None:
        fix = "end forward_indexer with topK()(score, o, ctx=ctx) or another selection"
        where = f"flow {name!r}, forward_indexer"
        raise TerminalError(where, "no terminal", "exactly one", fix, name, "forward_indexer")
    saved = set(indexer.state_writes)
    _check_request_reads(flow, indexer, saved)
    specs = _specs(flow) | (flow.request_specs or {})
    initial = {label: spec.initial for label, spec in specs.items()}
    fields = tuple(
        Field(label, variables[label], initial.get(label, 0.0))
        for label in (*geometry.reserved_fields, *_specs(flow))
        if label not in saved
    )
    states = tuple(
        _state(label, spec, variables[label], cache.field_writes.get(label))
        for label, spec in specs.items()
        if label in saved
    )
    kept = tuple(
        write
        for write in cache.field_writes.values()
        if write.target not in saved or not isinstance(write.value.op, Constant)
    )
    graph = Graph(
        name=name,
        geometry=geometry,
        fields=fields,
        states=(*states, *indexer.own_states),
        parameters=tuple(item.for_graph(label) for item, label in indexer.parameters.items()),
        inputs=tuple((label, variables[label]) for label in inputs),
        field_writes=kept,
        state_writes=tuple(indexer.state_writes.values()),
        output=indexer.output,
        partial_pages=bool(flow.partial_pages),
    )

    def transform(node: Node, inputs: tuple[Node, ...], scope: Scope) -> Node:
        if isinstance(node.op, FieldRead) and node.op.variable in saved:
            return replace(node, op=StateRead(node.op.variable))
        return keep(node, inputs, scope)

    return rebuild(graph, transform)


def _check_request_reads(flow: FlowBase, indexer: Trace, saved: set[str]) -> None:
    """Refuse a request cache that is read and never saved: nothing else writes to it."""
    for node in indexer.nodes:
        name = getattr(node.op, "variable", "")
        if name in (flow.request_specs or {}) and name not in saved:
            found, expected = "a read, and no Save", "a Save in forward_indexer"
            error = StateError(f"request cache {name!r}", found, expected, "Save it, or drop it")
            raise error.located(flow=indexer.flow, method=indexer.method, source=node.source)


def _state(name: str, spec: FieldSpec, kind: ValueType, start: FieldWrite | None) -> StateVar:
    """A constant that forward_cache fills in is the initial value."""
    initial = spec.initial
    if start is not None and isinstance(start.value.op, Constant):
        initial = start.value.op.value
    return StateVar(name, kind, initial, Inherit(spec.inherit))


def _specs(flow: FlowBase) -> dict[str, FieldSpec]:
    return flow.field_specs or {}


def _guarded(flow: str, method: str, call: Callable[..., Result], *arguments: object) -> Result:
    """Run the author's code; whatever it raises gets flow, method and line."""
    try:
        return call(*arguments)
    except FlowError as error:
        source = error.source or raising_line(error)
        raise error.located(flow=flow, method=method, source=source) from error
    except TilewrightError:
        raise
    except (Exception, SystemExit) as error:  # the border to the author's code
        source, found = raising_line(error), f"{type(error).__name__}: {error}"
        where, fix = f"flow {flow!r}, {method}, {source}", fix_of(error, "correct the method")
        raise FlowError(where, found, "a method that runs", fix, flow, method, source) from error
