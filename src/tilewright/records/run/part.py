"""Where the time of a run went, what it used, and what went wrong in it."""

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

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


FieldTimes = dict[str, NonNegativeInt]  # by path in a machine file, the longest first


class PathTimes(Document):
    """The critical path by field of the machine file: what each sets the time of.

    It goes through other programs where one waits for their messages, so that it may have less
    waiting and more work than the breakdown, which is of the program that ends last.
    ``least_ps`` has the steps that come after each other in any run that does the same commands,
    each as short as on an idle machine: no refresh, no queue, rows of memories open.
    """

    work_ps: FieldTimes = Field(default_factory=dict)
    """Steps of the path; waiting for units and inside memories counts as theirs."""
    queue_ps: FieldTimes = Field(default_factory=dict)
    """Waiting in front of links, by the field of the rate of that link."""
    least_ps: FieldTimes = Field(default_factory=dict)
    command_ps: FieldTimes = Field(default_factory=dict)  # of least_ps, the launches' own
    refresh_ps: NonNegativeInt = 0  # that refresh holds the path up
    unknown_ps: NonNegativeInt = 0  # waiting for other programs whose path was not traced
    num_accesses: NonNegativeInt = 0  # of memories, on the path
    window_ps: NonNegativeInt = 0  # of accesses on the path whose return let the next one set out


class ResourceUse(Document):
    """All units, links or pseudo-channels whose rate one field of the machine file sets.

    Shares are of the measured time. A pseudo-channel is in use while it moves data.
    """

    field: str  # "pe.gemm.hz", "cube.noc.bytes_per_us"
    num_used: PositiveInt  # that did any work
    busiest: str
    busy_ps: NonNegativeInt  # of the busiest
    greatest: Fraction  # share of the busiest
    median: Fraction
    mean: Fraction


class ChannelUse(Document):
    """The pseudo-channels of the memory slice that has the busiest one, and that one's banks."""

    memory: str
    shares: tuple[Fraction, ...]  # in the order of the channels; refresh is no use
    row_hits: NonNegativeInt  # bursts of the slice, all channels together
    row_misses: NonNegativeInt  # bursts that had to open a row
    banks: tuple[NonNegativeInt, ...] = ()
    """Rows that each bank of the busiest channel opened. Empty: the memory has no banks."""
    row_cycle_ps: NonNegativeInt = 0  # least time from one opening of a bank to the next


class FlaggedAccess(Document):
    """One access that a finding of the sanitizer names."""

    what: str
    actor: str
    line: str
    at_ps: NonNegativeInt | None  # None: it has not happened
    num_bytes: NonNegativeInt

    def __str__(self) -> str:
        time = "never served" if self.at_ps is None else f"at {self.at_ps} ps"
        place = f", {self.line}" if self.line else ""
        return f"{self.what} of {self.num_bytes} bytes by {self.actor}{place}, {time}"


class SanitizerFinding(Document):
    """One mistake: where in which tensor, and who is involved."""

    kind: str
    tensor: str
    element: str
    num_bytes: NonNegativeInt
    detail: str
    sides: tuple[FlaggedAccess, ...]  # of a race the earlier access and the later one
    count: PositiveInt  # of the same lines
