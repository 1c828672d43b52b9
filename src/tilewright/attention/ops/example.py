"""What examples of ops are made of: sizes, types of operands, and the example itself.

Each module of ops has ``EXAMPLES`` of its own, which the op reference shows and the tests hold.
"""

from typing import NamedTuple

from tilewright.attention.graph import (
    FORMAT,
    DType,
    Geometry,
    Leading,
    Op,
    Scope,
    Side,
    Types,
    ValueType,
)

EXAMPLE_GEOMETRY = Geometry.gqa(page_size=16, head_dim=64, query_heads=4)


class Example(NamedTuple):
    """An op with operands of these types, on this side."""

    op: Op
    inputs: Types = ()
    side: Side = Side.INDEXER

    def result(self) -> ValueType:
        return self.op.result_type(self.inputs, example_scope(self.side))


def example_scope(side: Side) -> Scope:
    """Variables that the examples read: the query, keys, a field, a state, a parameter."""
    variables = {
        "q": row(4, 64, DType.BFLOAT16),
        "k": field(16, 64),
        "v": field(16, 64),
        "centroids": field(1, 64),
        "score": field(1, 1),
        "param.W": parameter(32, 64),
    }
    return Scope(side, EXAMPLE_GEOMETRY, variables)


def row(rows: int, columns: int, dtype: DType = DType.FLOAT32) -> ValueType:
    return ValueType(FORMAT.BATCHED, Leading.ONE, (rows, columns), dtype)


def pages(rows: int, columns: int, dtype: DType = DType.FLOAT32) -> ValueType:
    return ValueType(FORMAT.RAGGED, Leading.PAGES, (rows, columns), dtype)


def field(rows: int, columns: int) -> ValueType:
    return ValueType(FORMAT.PAGED, Leading.PAGES, (rows, columns), DType.BFLOAT16)


def page(rows: int, columns: int) -> ValueType:
    """Keys of the page that is complete, on the cache side."""
    return ValueType(FORMAT.PAGED, Leading.ONE, (rows, columns), DType.BFLOAT16, (1,))


def parameter(*shape: int) -> ValueType:
    return ValueType(FORMAT.PARAMETER, Leading.NONE, shape, DType.FLOAT32)


SCORES = pages(1, 1)
PER_HEAD = pages(1, 4)
WHOLE = pages(1, 1, DType.INT32)
MASK = pages(1, 1, DType.BOOL)
QUERY = row(4, 64, DType.BFLOAT16)
CENTROIDS = field(1, 64)
