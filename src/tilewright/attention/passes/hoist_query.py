"""Work on the query alone is done once per row, not once per page."""

from dataclasses import replace

from tilewright.attention.graph import FORMAT, Graph, Node, Scope, keep, make_node, rebuild
from tilewright.attention.ops import binary, layout, linear, reduce


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
