"""The executor that defines what a flow means: array-API code on NumPy and torch."""

from tilewright.attention.backends.reference.op.frame import ByteCounts, Counters
from tilewright.attention.backends.reference.pages import (
    PageCsr,
    PageLists,
    PageRows,
    csr_of,
    rows_of,
)
from tilewright.attention.backends.reference.session import Session, session_of_config
from tilewright.attention.backends.reference.shared import SessionSnapshot, SessionSpec, Suspended
from tilewright.attention.backends.reference.step import Step, StepOutput

__all__ = (
    "ByteCounts",
    "Counters",
    "PageCsr",
    "PageLists",
    "PageRows",
    "Session",
    "SessionSnapshot",
    "SessionSpec",
    "Step",
    "StepOutput",
    "Suspended",
    "csr_of",
    "rows_of",
    "session_of_config",
)
