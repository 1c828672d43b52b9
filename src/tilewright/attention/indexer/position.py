"""Position, age and length of pages as values."""

from tilewright.attention.abs.op import op_class
from tilewright.attention.ops import position

__all__ = (
    "HeadIndex",
    "LayerIndex",
    "PageAge",
    "PageCount",
    "PageIndex",
    "QueryHeadIndex",
    "ReservedPages",
    "StepIndex",
    "TokenCount",
    "TokenPosition",
    "TokenValid",
)

PageIndex = op_class(__name__, position.PageIndex)
PageAge = op_class(__name__, position.PageAge)
PageCount = op_class(__name__, position.PageCount)
TokenCount = op_class(__name__, position.TokenCount)
TokenPosition = op_class(__name__, position.TokenPosition)
TokenValid = op_class(__name__, position.TokenValid)
ReservedPages = op_class(__name__, position.ReservedPages)
StepIndex = op_class(__name__, position.StepIndex)
LayerIndex = op_class(__name__, position.LayerIndex)
HeadIndex = op_class(__name__, position.HeadIndex)
QueryHeadIndex = op_class(__name__, position.QueryHeadIndex)
