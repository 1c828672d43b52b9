"""Passes that change values by rounding only: fewer operations for each page."""

from dataclasses import replace

from tilewright.attention.graph import FORMAT, Graph, Node, Scope, keep, make_node, rebuild
from tilewright.attention.ops import binary, layout, linear, reduce, unary
from tilewright.attention.ops.leaf import FieldRead


def hoist_query(graph: Graph) -> Graph:
    """Move linear work across products until it meets values per row only.

    ``a * (b * page)`` becomes ``(a * b) * page``, and a sum or mean over query heads of ``GeMM(q,
    page)`` becomes one product with the summed query. Values change by rounding only.
    """

    def transform(node: Node, inputs: tuple[Node, ...], scope: Scope) -> Node:
        kept = keep(node, inputs, scope)
        return _regrouped(kept, scope) or _reduced_query(kept, scope) or kept

    return rebuild(graph, transform)


def _per_row(node: Node) -> bool:
    return node.type.format is FORMAT.BATCHED


def _regrouped(node: Node, scope: Scope) -> Node | None:
    if not isinstance(node.op, binary.Multiply) or not node.type.dtype.is_float:
        return None
    for outer, product in (node.inputs, node.inputs[::-1]):
        if not _per_row(outer) or not isinstance(product.op, binary.Multiply):
            continue
        for inner, page in (product.inputs, product.inputs[::-1]):
            if _per_row(inner) and not _per_row(page):
                both = make_node(node.op, (outer, inner), scope, node.source)
                made = make_node(node.op, (both, page), scope, node.source)
                return made if made.type == node.type else None
    return None


def _reduced_query(node: Node, scope: Scope) -> Node | None:
    """Sum or Mean over the axis of a GeMM that is the rows of a value per row."""
    if not isinstance(node.op, reduce.Sum | reduce.Mean) or node.op.dim == 0:
        return None
    (product,) = node.inputs
    if isinstance(product.op, layout.Transpose):
        turned = replace(node.op, dim=3 - node.op.dim)
        inner = _reduced(turned, product.inputs[0], scope, node.source)
        made = inner and make_node(product.op, (inner,), scope, node.source)
    else:
        made = _reduced(node.op, product, scope, node.source)
    return made if made is not None and made.type == node.type else None


def _reduced(op: reduce.Sum | reduce.Mean, product: Node, scope: Scope, source: str) -> Node | None:
    if not isinstance(product.op, linear.GeMM) or not product.type.dtype.is_float:
        return None
    x, y = product.inputs
    by_head = len(y.type.shape) == 3  # weights of each head: the rows of x are not alike
    if op.dim != 2 or not _per_row(x) or _per_row(y) or x.type.shape[0] == 1 or by_head:
        return None
    query = make_node(replace(op, dim=1), (x,), scope, source)
    return make_node(product.op, (query, y), scope, source)


_PAIRS: tuple[tuple[type, type], ...] = (
    (reduce.Max, reduce.Min),
    (reduce.MaxInterleave, reduce.MinInterleave),
)


def split_bound(graph: Graph) -> Graph:
    """``sum_d max(q_d M_d, q_d m_d)`` becomes ``relu(q) . M - relu(-q) . m``.

    Both are equal where M >= m in every channel. That is proved, not hoped for: M and m must be
    fields that the cache side fills with the maximum and minimum of one value. A query that is a
    Kronecker factor (sub-pages) is treated alike. Values change by rounding only.
    """
    ordered = _ordered_fields(graph)

    def transform(node: Node, inputs: tuple[Node, ...], scope: Scope) -> Node:
        kept = keep(node, inputs, scope)
        return _split(kept, scope, ordered) or kept

    return rebuild(graph, transform)


def _ordered_fields(graph: Graph) -> set[tuple[str, str]]:
    """Pairs of fields (upper, lower) whose writes are Max and Min of the same value.

    Rounding to the fields' element type keeps the order if both have the same one.
    """
    kinds = {item.name: (item.type.dtype, item.initial) for item in graph.fields}
    writes = {item.target: item.value for item in graph.field_writes if item.target in kinds}
    return {
        (upper, lower)
        for upper, high in writes.items()
        for lower, low in writes.items()
        if kinds[upper] == kinds[lower] and _bounds_one_value(high, low)
    }


def _bounds_one_value(high: Node, low: Node) -> bool:
    return any(
        type(high.op) is top
        and type(low.op) is bottom
        and high.op.attributes() == low.op.attributes()
        and high.inputs == low.inputs
        for top, bottom in _PAIRS
    )


def _split(node: Node, scope: Scope, ordered: set[tuple[str, str]]) -> Node | None:
    if not isinstance(node.op, reduce.Sum) or node.op.dim != 2:
        return None
    (larger,) = node.inputs
    if not isinstance(larger.op, binary.Maximum):
        return None
    products = [_factors(item) for item in larger.inputs]
    if None in products or type(larger.inputs[0].op) is not type(larger.inputs[1].op):
        return None
    (query, one), (other_query, two) = (item for item in products if item is not None)
    if query is not other_query:
        return None
    for upper, lower in ((one, two), (two, one)):
        if _field(upper) is not None and (_field(upper), _field(lower)) in ordered:
            return _two_products(node, query, (upper, lower), scope)
    return None


def _factors(node: Node) -> tuple[Node, Node] | None:
    """Query and page of a product, if it is one of those two."""
    kron = isinstance(node.op, linear.Kron) and node.op.dim == (1,)
    if not kron and not isinstance(node.op, binary.Multiply):
        return None
    pairs = (node.inputs,) if kron else (node.inputs, node.inputs[::-1])
    for query, page in pairs:
        if query.type.format is FORMAT.BATCHED and page.type.format is FORMAT.PAGED:
            rows = (query.type.shape[0], page.type.shape[0])
            if (kron or 1 in rows) and query.type.shape[1] == page.type.shape[1]:
                return query, page
    return None


def _field(node: Node) -> str | None:
    return node.op.variable if isinstance(node.op, FieldRead) else None


def _two_products(node: Node, query: Node, pages: tuple[Node, Node], scope: Scope) -> Node | None:
    source = node.source

    def product(sign: float, page: Node) -> Node:
        signed = query
        if sign < 0:
            signed = make_node(unary.Add_Mul(0.0, sign), (query,), scope, source)
        positive = make_node(unary.Relu(), (signed,), scope, source)
        return make_node(linear.GeMM(), (positive, page), scope, source)

    upper, lower = pages
    inputs = (product(1.0, upper), product(-1.0, lower))
    made = make_node(binary.Add(1.0, -1.0), inputs, scope, source)  # [S, page rows, query rows]
    if query.type.shape[0] > 1:
        made = make_node(layout.Transpose(), (made,), scope, source)
    if made.type.shape != node.type.shape:
        made = make_node(layout.Reshape(*node.type.shape), (made,), scope, source)
    return made if made.type == node.type else None
