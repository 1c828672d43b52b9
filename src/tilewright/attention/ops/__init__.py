"""Definitions of the operations a flow may use: attributes, rules of types, meaning.

How ops are evaluated is the matter of a backend, keyed by the class of the op.
"""

from tilewright.attention.ops.table import OPS

__all__ = ("OPS",)
