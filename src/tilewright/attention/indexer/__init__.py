"""Op objects of forward_indexer, under the names that Vortex users know, and more.

Most are made from the table of ops; ``__init__.pyi`` lists all for type checkers and editors.
"""

from tilewright.attention.abs import Parameter
from tilewright.attention.abs.context_base import IndexerContext, MetaData
from tilewright.attention.indexer.ops import (
    GeMV,
    Load,
    Save,
    build_ops,
    get_ctx,
)
from tilewright.attention.indexer.select import (
    Attend,
    AttendBranches,
    GTGroupScore,
    GTTopK,
    ZoneEstimate,
    approxTopK,
    every,
    pages,
    recent,
    sink,
    threshold,
    topK,
    topP,
)
from tilewright.attention.ops import OPS

_OPS = build_ops(__name__, OPS)
globals().update(_OPS)

__all__ = [
    "Attend",
    "AttendBranches",
    "GTGroupScore",
    "GTTopK",
    "GeMV",
    "IndexerContext",
    "Load",
    "MetaData",
    "Parameter",
    "Save",
    "ZoneEstimate",
    "approxTopK",
    "every",
    "get_ctx",
    "pages",
    "recent",
    "sink",
    "threshold",
    "topK",
    "topP",
]
__all__ += _OPS
__all__.sort()
