"""Where the time of a run went: parts along its critical path, and the greatest share of all."""

from typing import Literal

from pydantic import NonNegativeInt

from tilewright.records.document import Document, Fraction


class RunParts(Document):
    """Picoseconds along the critical path of the program that ends last; they add up exactly."""

    dispatch: NonNegativeInt = 0  # from the host's submission to the first command of its PE
    issue: NonNegativeInt = 0  # the PE's CPU and scheduler
    translation: NonNegativeInt = 0  # walks of the page table
    memory_read: NonNegativeInt = 0  # on the way to a memory, in it, and back
    memory_write: NonNegativeInt = 0
    refresh: NonNegativeInt = 0  # accesses held up by it
    link_queueing: NonNegativeInt = 0  # accesses and messages that wait in front of a link
    tcm_port: NonNegativeInt = 0
    gemm: NonNegativeInt = 0
    vector: NonNegativeInt = 0
    message: NonNegativeInt = 0  # a message of its own on the way
    message_wait: NonNegativeInt = 0  # for a message of another PE, or for room to send
    execution: NonNegativeInt = 0  # of programs whose path was not traced
    completion: NonNegativeInt = 0  # from the last end to the host's knowing
    host_transfer: NonNegativeInt = 0  # between launches: copies, mappings
    other: NonNegativeInt = 0

    @property
    def total_ps(self) -> int:
        return sum(self.by_name().values())

    def by_name(self) -> dict[str, int]:
        """All parts in the order of the fields."""
        return {name: getattr(self, name) for name in type(self).model_fields}


BlockKind = Literal["unit", "link", "memory"]


class Bottleneck(Document):
    """What had the greatest share of the time: a part of the path, or a unit, link or memory."""

    kind: Literal["part"] | BlockKind
    name: str  # of the part, or of the block
    share: Fraction
