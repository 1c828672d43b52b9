"""What ``tilewright machine show`` and ``list`` tell about machines."""

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


class MachineShowRecord(Document):
    """A machine that was built: its resolved spec, its figures and what is doubtful about it."""

    kind: Literal["machine_show"] = "machine_show"
    schema_version: Literal[1] = 1
    source: str  # the file or preset, as it was named
    overrides: tuple[str, ...]
    machine: str
    machine_hash: Sha256
    spec: dict[str, JsonValue]  # every value of the machine, as a machine file names it
    figures: MachineFigures
    num_nodes: PositiveInt
    num_links: PositiveInt
    attachments: dict[str, str]  # node of the first cube -> the router it sits on; cubes are alike
    warnings: tuple[str, ...]
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
