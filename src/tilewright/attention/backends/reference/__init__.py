"""The executor that defines what a flow means: array-API code on NumPy and torch."""

from tilewright.attention.backends.reference.configured import session_of_config
from tilewright.attention.backends.reference.counters import ByteCounts, Counters
from tilewright.attention.backends.reference.page_list import (
    PageCsr,
    PageLists,
    PageRows,
    csr_of,
    rows_of,
)
from tilewright.attention.backends.reference.session import Session
from tilewright.attention.backends.reference.shared import SessionSnapshot, Suspended
from tilewright.attention.backends.reference.spec import SessionSpec
from tilewright.attention.backends.reference.step import Step
from tilewright.attention.backends.reference.step_output import StepOutput

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
