"""What attention tells: the mass of pages."""

from tilewright.attention.abs.op import op_class
from tilewright.attention.ops import feedback

__all__ = (
    "AttentionMass",
    "PromptMass",
)

AttentionMass = op_class(__name__, feedback.AttentionMass)
PromptMass = op_class(__name__, feedback.PromptMass)
