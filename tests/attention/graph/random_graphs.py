"""Random flows as graphs: whatever fits, of many ops.

All factors are powers of two, and so are sizes that a mean divides by: on whole numbers nothing is
rounded, so that two writings of one value agree to the last bit. Masks of -1e30 would round.
"""

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tilewright.attention.graph import (
    FORMAT,
    Branch,
    DType,
    Field,
    FieldWrite,
    Geometry,
    Graph,
    Leading,
    Node,
    Op,
    Output,
    Scope,
    Side,
    StateVar,
    StateWrite,
    ValueType,
    make_node,
    verify_graph,
)
from tilewright.attention.ops import binary, layout, linear, reduce, unary
from tilewright.attention.ops.leaf import Constant, FieldRead, Input, StateRead
from tilewright.attention.ops.position import PageAge, PageIndex
from tilewright.attention.ops.selection import TopK, Union
from tilewright.errors import FlowError

GEOMETRY = Geometry.gqa(
    page_size=4,
    head_dim=8,
    query_heads=4,
    kv_dtype=DType.FLOAT32,
    query_dtype=DType.FLOAT32,
    field_dtype=DType.FLOAT32,
)

UNARY: tuple[Op, ...] = (
    unary.Relu(),
    unary.Add_Mul(0.5, -1.0),
    unary.Add_Mul(0.0, 1.0),
    unary.Abs(),
    unary.Cast(DType.FLOAT32),
    layout.Transpose(),
    layout.Transpose(),
    reduce.Sum(1),
    reduce.Sum(2),
    reduce.Mean(1),
    reduce.Mean(2),
    reduce.Max(1),
    reduce.Max(2),
    reduce.Min(2),
    reduce.Mean(0),
)
BINARY: tuple[Op, ...] = (
    binary.Add(),
    binary.Add(1.0, -1.0),
    binary.Multiply(),
    binary.Multiply(),
    binary.Maximum(),
    binary.Minimum(),
    linear.GeMM(),
    linear.GeMM(),
)


def _paged(rows: int, columns: int) -> ValueType:
    return ValueType(FORMAT.PAGED, Leading.PAGES, (rows, columns), DType.FLOAT32)


VARIABLES = {
    "q": ValueType(FORMAT.BATCHED, Leading.ONE, (4, 8), DType.FLOAT32),
    "k": _paged(4, 8),
    "v": _paged(4, 8),
    "high": _paged(1, 8),
    "low": _paged(1, 8),
    "kept": _paged(1, 1),
}


@st.composite
def graphs(draw: DrawFn) -> Graph:
    """Two summaries, a state, and a score of up to a dozen random ops."""
    cache = Scope(Side.CACHE, GEOMETRY, VARIABLES)
    scope = Scope(Side.INDEXER, GEOMETRY, VARIABLES)
    keys = make_node(FieldRead("k"), (), cache, "flow.py:1")
    writes = tuple(
        FieldWrite(name, make_node(op, (keys,), cache, f"flow.py:{line}"), f"flow.py:{line}")
        for line, (name, op) in enumerate({"high": reduce.Max(1), "low": reduce.Min(1)}.items(), 2)
    )
    values = [
        make_node(op, (), scope, f"flow.py:{line}")
        for line, op in enumerate(
            (Input("q"), FieldRead("high"), FieldRead("low"), StateRead("kept"), Constant(0.25)), 4
        )
    ]
    for line in range(10, 10 + draw(st.integers(3, 12))):
        op = draw(st.sampled_from((*UNARY, *BINARY)))
        recent = st.sampled_from(values[-3:]) | st.sampled_from(values)
        inputs = tuple(draw(recent) for _ in op.operands)
        try:
            values.append(make_node(op, inputs, scope, f"flow.py:{line}"))
        except FlowError:
            continue
    ends = [_bound(scope)] if draw(st.booleans()) else []
    used = {item for value in values for item in value.inputs}
    ends += [value for value in values if value not in used]
    score = _score(ends[0], scope)
    for end in ends[1:]:
        score = make_node(binary.Add(), (score, _score(end, scope)), scope, "flow.py:38")
    chosen = make_node(TopK(), (score,), scope, "flow.py:40")
    if draw(st.booleans()):
        extra = make_node(
            TopK(2), (_score(draw(st.sampled_from(values)), scope),), scope, "flow.py:41"
        )
        chosen = make_node(Union(), (chosen, extra), scope, "flow.py:42")
    graph = Graph(
        name="random",
        geometry=GEOMETRY,
        fields=tuple(Field(name, VARIABLES[name]) for name in ("k", "v", "high", "low")),
        states=(StateVar("kept", VARIABLES["kept"], draw(st.sampled_from([0.0, -1.5]))),),
        inputs=(("q", VARIABLES["q"]),),
        field_writes=writes,
        state_writes=(StateWrite("kept", score, "flow.py:39"),),
        output=Output((Branch(chosen),), "flow.py:43"),
        partial_pages=False,
    )
    verify_graph(graph)
    return graph


def _bound(scope: Scope) -> Node:
    """Quest's bound, so that the pass that knows it has something to do."""
    query, high, low = (
        make_node(op, (), scope, "flow.py:30")
        for op in (Input("q"), FieldRead("high"), FieldRead("low"))
    )
    products = [
        make_node(binary.Multiply(), (query, page), scope, "flow.py:31") for page in (low, high)
    ]
    larger = make_node(binary.Maximum(), tuple(products), scope, "flow.py:32")
    return make_node(reduce.Sum(2), (larger,), scope, "flow.py:33")


def _score(value: Node, scope: Scope) -> Node:
    """A value per page [S, 1, 1] from any value."""
    for dim in (1, 2):
        value = make_node(reduce.Max(dim), (value,), scope, "flow.py:35")
    age = make_node(PageAge(), (), scope, "flow.py:36")
    index = make_node(PageIndex(), (), scope, "flow.py:36")
    scaled = make_node(unary.Add_Mul(0.0, 2.0**-10), (age,), scope, "flow.py:37")
    other = make_node(unary.Add_Mul(0.0, 2.0**-9), (index,), scope, "flow.py:37")
    both = make_node(binary.Add(), (scaled, other), scope, "flow.py:38")
    return make_node(binary.Add(), (value, both), scope, "flow.py:38")
