"""What ``tilewright machine check`` found out about a machine that is right."""

from typing import Literal

from pydantic import PositiveInt

from tilewright.records.document import Document, Sha256


class MachineCheckRecord(Document):
    """A machine that can be built; a wrong one gets a `FailureRecord` instead."""

    kind: Literal["machine_check"] = "machine_check"
    schema_version: Literal[1] = 1
    source: str  # the file or preset, as it was named
    overrides: tuple[str, ...] = ()
    machine: str
    machine_hash: Sha256
    num_pes: PositiveInt
    warnings: tuple[str, ...]
