"""Products with learned tables that are no blocks: too large for one, or with an axis of heads.

Tables are read where they are needed, in strips of columns or head by head.
"""

from collections.abc import Callable, Sequence

from tilewright.attention.codegen.expression.gather import Block, picked
from tilewright.attention.codegen.expression.memory import table_of
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.source.builder import Body, Operand, Shape, load_source, unpadded
from tilewright.attention.graph import Node
from tilewright.attention.ops import leaf, linear

WEIGHTED = (linear.FactorScore, linear.LearnedDescriptor)
"""Ops that always read their tables by themselves; products do if theirs are no blocks."""

_LARGEST_BLOCK = 1 << 15  # elements of a product that is still one block
_STRIP_ELEMENTS = 1 << 15  # of a product with a strip of a table
_LEAST_STRIP = 4

Value = Callable[[Node], Operand]


def is_weighted(node: Node) -> bool:
    """Tell whether a node reads a table by itself instead of taking it as a block."""
    if isinstance(node.op, WEIGHTED):
        return True
    if not isinstance(node.op, linear.GeMM):
        return False
    x, y = node.inputs
    size = padded(y.type.shape[0]) * padded(x.type.shape[0]) * padded(x.type.shape[1])
    is_table = isinstance(y.op, leaf.ParameterRead)
    return is_table and (len(y.type.shape) == 3 or size > _LARGEST_BLOCK)


def weighted_expression(node: Node, value: Value, body: Body) -> str:
    """Write the expression of such a node; its loop stands in the statements before."""
    x, y, *others = node.inputs
    operand = value(x)
    match node.op:
        case linear.FactorScore():
            return _factor_score(node.op, operand, value(others[0]), table_of(y, body), body)
        case linear.LearnedDescriptor():
            return _learned_descriptor(node.op, operand, [y, *others], body)
    emit = _product_by_head if len(y.type.shape) == 3 else _product_in_strips
    return emit(operand, table_of(y, body), y.type.shape, body)


def weighted_elements(node: Node) -> int:
    """Count the elements a page of the widest block that such a node goes through."""
    x, y = (item.type.shape for item in node.inputs[:2])
    match node.op:
        case linear.FactorScore(descriptors=descriptors, rank=rank):
            return padded(descriptors) * padded(rank)
        case linear.LearnedDescriptor(descriptors=descriptors, rank=rank):
            return padded(descriptors) * padded(rank) * padded(x[1])
    if len(y) == 3:
        heads, rows, width = y
        return padded(rows) * padded(x[0] // heads) * padded(width)
    return padded(y[0]) * padded(x[0]) * _strip(y[0], *x)


def _strip(rows: int, entries: int, width: int) -> int:
    """Return how many columns of a table are read together: a power of two."""
    fitting = _STRIP_ELEMENTS // (padded(rows) * padded(entries))
    return min(padded(width), max(fitting, _LEAST_STRIP))


def _table_block(table: str, head: str, rows: int, columns: int) -> str:
    """Load rows and columns of a head of a table: two axes, 0 in the padding."""
    row, column = f"tl.arange(0, {padded(rows)})[:, None]", f"tl.arange(0, {padded(columns)})"
    place = f"{table} + {head} * {rows * columns} + {row} * {columns} + {column}[None, :]"
    sizes = (row, rows, padded(rows)), (f"{column}[None, :]", columns, padded(columns))
    return f"{load_source(place, unpadded(*sizes))}.to(tl.float32)"


def _product_in_strips(x: Operand, table: str, shape: Shape, body: Body) -> str:
    """Compute ``out[s, a, b] = sum_k W[a, k] x[s, b, k]``, some columns at a time."""
    (rows, width), source = shape, Block.of(x)
    strip = _strip(rows, source.rows, width)
    out, start, part, weight, channel = body.new_names("product first part weight channel")
    entry = f"tl.arange(0, {padded(rows)})[:, None]"
    places = f"tl.minimum({channel}, {width - 1})[None, None, :]"
    places = f"tl.broadcast_to({places}, {source.extents(2, strip)})"
    inside = [f"({channel}[None, :] < {width})", *unpadded((entry, rows, padded(rows)))]
    weights = load_source(f"{table} + {entry} * {width} + {channel}[None, :]", inside)
    body.add(f"""
        {out} = tl.zeros(({source.lead}, {padded(rows)}, {padded(source.rows)}), tl.float32)
        for {start} in range(0, {width}, {strip}):
            {channel} = {start} + tl.arange(0, {strip})
            {part} = tl.gather({x.as_float()}, {places}, 2)
            {weight} = {weights}.to(tl.float32)
            {out} += tl.sum({weight}[None, :, None, :] * {part}[:, None, :, :], 3)
    """)
    return out


def _put_rows(out: str, index: str, count: int, part: Block, head: str) -> str:
    """Put the rows of one head in their place among ``count`` rows."""
    moved = picked(part, 1, f"{index} % {part.rows}", count)
    return f"{out} = tl.where({index} // {part.rows} == {head}, {moved}, {out})"


def _product_by_head(x: Operand, table: str, shape: Shape, body: Body) -> str:
    """Compute ``out[s, h Ny + a, b] = sum_k W[h, a, k] x[s, h Nx + b, k]``."""
    (heads, rows, width), source = shape, Block.of(x)
    entries = source.rows // heads
    index, of_x = body.index(1, heads * rows), body.index(1, entries)
    out, head, part, weight, found = body.new_names("product group part weight found")
    places = f"tl.minimum({of_x} + {head} * {entries}, {source.rows - 1})"
    result = Block(found, rows, entries, False, source.lead)
    body.add(f"""
        {out} = tl.zeros(({source.lead}, {padded(heads * rows)}, {padded(entries)}), tl.float32)
        for {head} in range(0, {heads}):
            {part} = {picked(source, 1, places, entries)}
            {part} = {_zeros_beyond(part, width, x)}
            {weight} = {_table_block(table, head, rows, width)}
            {found} = tl.sum({weight}[None, :, None, :] * {part}[:, None, :, :], 3)
            {_put_rows(out, index, heads * rows, result, head)}
    """)
    return out


def _zeros_beyond(name: str, width: int, operand: Operand) -> str:
    """Convert a moved part to float32; its padding meets zeros of the table and must be finite."""
    text = name if operand.is_float else f"{name}.to(tl.float32)"
    if padded(width) == width:
        return text
    return f"tl.where(tl.arange(0, {padded(width)})[None, None, :] < {width}, {text}, 0.0)"


def _factor_score(
    op: linear.FactorScore, query: Operand, descriptors: Operand, table: str, body: Body
) -> str:
    """Take the query of each head through its weights, then the best of the head's descriptors."""
    width, source = query.type.shape[1], Block.of(descriptors)
    of_head, member = body.index(1, op.heads), body.index(1, op.descriptors)
    names = body.new_names("score group asked projected part dots")
    score, head, asked, projected, part, dots = names
    own, hidden = f"tl.where({of_head} == {head}, {query.name}, 0.0)", ""
    if padded(width) != width:
        own = f"tl.where({body.index(2, width)} < {width}, {own}, 0.0)"
    places = f"tl.minimum({member} + {head} * {op.descriptors}, {source.rows - 1})"
    weights = _table_block(table, head, width, op.rank)
    if padded(op.descriptors) != op.descriptors:
        hidden = f'{dots} = tl.where({member} < {op.descriptors}, {dots}, float("-inf"))'
    body.add(f"""
        {score} = tl.zeros(({source.lead}, 1, 1), tl.float32)
        for {head} in range(0, {op.heads}):
            {asked} = tl.reshape(tl.sum({own}, 1), ({padded(width)}, 1))
            {projected} = tl.sum({asked} * {weights}, 0)[None, None, :]
            {part} = {picked(source, 1, places, op.descriptors)}
            {part} = {_zeros_beyond(part, op.rank, descriptors)}
            {dots} = tl.sum({part} * {projected}, 2, keep_dims=True)
            {hidden}
            {score} += tl.max({dots}, 1, keep_dims=True)
    """)
    return score


def _learned_descriptor(
    op: linear.LearnedDescriptor, x: Operand, tables: Sequence[Node], body: Body
) -> str:
    """Take the tokens of each head through their weights, then channels through theirs."""
    (tokens, width), count = x.type.shape, op.heads * op.descriptors
    token_table, key_table = (table_of(item, body) for item in tables)
    index = body.index(1, count)
    out, head, page, pooled, found = body.new_names("described group keys pooled descriptor")
    weights = _table_block(token_table, head, tokens, op.descriptors)
    keys = _table_block(key_table, head, width, op.rank)
    block = Block(found, op.descriptors, op.rank, False, "1")
    body.add(f"""
        {page} = tl.reshape({body.kept(x, 1, "0.0")}, ({padded(tokens)}, {padded(width)}))
        {out} = tl.zeros((1, {padded(count)}, {padded(op.rank)}), tl.float32)
        for {head} in range(0, {op.heads}):
            {pooled} = tl.sum({weights}[:, :, None] * {page}[:, None, :], 0)
            {found} = tl.sum({pooled}[:, :, None] * {keys}[None, :, :], 1)[None, :, :]
            {_put_rows(out, index, count, block, head)}
    """)
    return out
