"""The run record: schema, hashes, writer. Nobody else defines a JSON field."""

from tilewright.canonical import canonical_json
from tilewright.records.bench import (
    EngineBenchRecord,
    EngineRatios,
    EngineWorkloadRow,
    GrowthRow,
)
from tilewright.records.check import (
    Breakdown,
    OracleRow,
    ProbeRecord,
    ProbeRow,
    SkippedCase,
    ValidateRecord,
)
from tilewright.records.demo import DemoRecord
from tilewright.records.document import (
    Document,
    FailureRecord,
    Versions,
    describe_failure,
    installed_version,
    installed_versions,
)
from tilewright.records.file import (
    MAX_TEXT_BYTES,
    read_file,
    read_record,
    read_text_file,
    told_if_contradictory,
    write_record,
)
from tilewright.records.machine import (
    ImportedField,
    MachineCheckRecord,
    MachineFigures,
    MachineImportRecord,
    MachineShowRecord,
)
from tilewright.records.run.part import Bottleneck, RunParts
from tilewright.records.run.record import (
    LaunchRow,
    MachineOfRun,
    RunRecord,
    Totals,
    WhatRan,
)
from tilewright.records.whole_file import (
    check_target,
    check_targets,
    locked_target,
    whole_file,
    write_file,
)

__all__ = (
    "MAX_TEXT_BYTES",
    "Bottleneck",
    "Breakdown",
    "DemoRecord",
    "Document",
    "EngineBenchRecord",
    "EngineRatios",
    "EngineWorkloadRow",
    "FailureRecord",
    "GrowthRow",
    "ImportedField",
    "LaunchRow",
    "MachineCheckRecord",
    "MachineFigures",
    "MachineImportRecord",
    "MachineOfRun",
    "MachineShowRecord",
    "OracleRow",
    "ProbeRecord",
    "ProbeRow",
    "RunParts",
    "RunRecord",
    "SkippedCase",
    "Totals",
    "ValidateRecord",
    "Versions",
    "WhatRan",
    "canonical_json",
    "check_target",
    "check_targets",
    "describe_failure",
    "installed_version",
    "installed_versions",
    "locked_target",
    "read_file",
    "read_record",
    "read_text_file",
    "told_if_contradictory",
    "whole_file",
    "write_file",
    "write_record",
)
