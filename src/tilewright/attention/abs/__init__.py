"""vTensor, vOp, Parameter and contexts: what the two op libraries are made of."""

from tilewright.attention.abs.argument import BranchSpec, FieldMap, OutputSlot
from tilewright.attention.abs.context_base import ContextBase
from tilewright.attention.abs.op import vOp
from tilewright.attention.abs.tensor import Parameter, as_vtensor, vTensor
from tilewright.attention.abs.value import Value
from tilewright.attention.graph import FORMAT

__all__ = (
    "FORMAT",
    "BranchSpec",
    "ContextBase",
    "FieldMap",
    "OutputSlot",
    "Parameter",
    "Value",
    "as_vtensor",
    "vOp",
    "vTensor",
)
