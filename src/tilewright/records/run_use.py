"""What a run used: time of its critical path by field, units, links, pseudo-channels and banks."""

from pydantic import Field, NonNegativeInt, PositiveInt

from tilewright.records.document import Document, Fraction

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
