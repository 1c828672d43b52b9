"""Wrong accesses that ``--sanitize`` found in a run."""

from pydantic import NonNegativeInt, PositiveInt

from tilewright.records.document import Document


class AccessSide(Document):
    """One access of a finding."""

    what: str
    actor: str
    line: str
    at_ps: NonNegativeInt | None  # None: it has not happened
    num_bytes: NonNegativeInt


class SanitizerFinding(Document):
    """One mistake: where in which tensor, and who is involved."""

    kind: str
    tensor: str
    element: str
    num_bytes: NonNegativeInt
    detail: str
    sides: tuple[AccessSide, ...]  # of a race the earlier access and the later one
    count: PositiveInt  # of the same lines
