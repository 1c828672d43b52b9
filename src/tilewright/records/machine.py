"""What ``tilewright machine`` tells about machines."""

from typing import Literal

from pydantic import JsonValue, NonNegativeInt, PositiveInt

from tilewright.records.document import Document, Seconds, Sha256


class MachineFigures(Document):
    """What the machine could do at best; a bisection is None where there is nothing to cut."""

    num_sips: PositiveInt
    num_cubes: PositiveInt
    num_pes: PositiveInt
    f16_flop_per_s: PositiveInt
    hbm_bytes: PositiveInt
    hbm_bytes_per_us: NonNegativeInt
    refreshed_hbm_bytes_per_us: NonNegativeInt
    cube_bisection_bytes_per_us: NonNegativeInt
    sip_bisection_bytes_per_us: NonNegativeInt | None
    fabric_bisection_bytes_per_us: NonNegativeInt | None


class KnownMachine(Document):
    """A machine that a file describes, and what is doubtful about it."""

    source: str  # the file or preset, as it was named
    machine: str
    machine_hash: Sha256
    warnings: tuple[str, ...]


class MachineShowRecord(KnownMachine):
    """A machine that was built: its resolved spec and its figures."""

    kind: Literal["machine_show"] = "machine_show"
    schema_version: Literal[1] = 1
    overrides: tuple[str, ...]
    spec: dict[str, JsonValue]  # every value of the machine, as a machine file names it
    figures: MachineFigures
    num_nodes: PositiveInt
    num_links: PositiveInt
    attachments: dict[str, str]  # node of the first cube -> the router it sits on; cubes are alike
    build_seconds: Seconds  # of wall time: reading, building and the proof against deadlock
    picture: str | None  # the SVG file that was written


class MachineRow(Document):
    """A machine that ships."""

    name: str
    summary: str
    figures: MachineFigures


class MachineListRecord(Document):
    """All machines that ship."""

    kind: Literal["machine_list"] = "machine_list"
    schema_version: Literal[1] = 1
    machines: tuple[MachineRow, ...]


class MachineCheckRecord(KnownMachine):
    """A machine that can be built; a wrong one gets a `FailureRecord` instead."""

    kind: Literal["machine_check"] = "machine_check"
    schema_version: Literal[1] = 1
    overrides: tuple[str, ...] = ()
    num_pes: PositiveInt


class ImportedField(Document):
    """A field of the machine that differs from the base, and the foreign key that sets it."""

    field: str
    value: int | str | tuple[int, ...]  # in the field's unit
    key: str
    is_default: bool  # whether the key is absent and the foreign system's default holds


class MachineImportRecord(KnownMachine):
    """A machine made from a foreign description; one that cannot be gets a `FailureRecord`."""

    kind: Literal["machine_import"] = "machine_import"
    schema_version: Literal[1] = 1
    file: str | None  # the machine file that was written
    num_pes: PositiveInt
    fields: tuple[ImportedField, ...]
    without_effect: dict[str, str]  # reason by foreign key
    text: str  # of the machine file
