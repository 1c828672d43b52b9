"""Op objects of forward_cache, under the names that Vortex users know, and more.

Most are made from the table of ops; ``__init__.pyi`` lists all for type checkers and editors.
"""

from tilewright.attention.abs.context_base import CacheContext, ctx
from tilewright.attention.cache.ops import Fill, build_ops, get_ctx
from tilewright.attention.ops import OPS

_OPS = build_ops(__name__, OPS)
globals().update(_OPS)

__all__ = ["CacheContext", "Fill", "ctx", "get_ctx"]
__all__ += _OPS
__all__.sort()
