"""The run record: schema, hashes, writer. Nobody else defines a JSON field."""

from tilewright.records.bench import (
    EngineBenchRecord,
    EngineRatios,
    EngineWorkloadRow,
    GrowthRow,
)
from tilewright.records.canonical import canonical_json, content_hash
from tilewright.records.demo import DemoRecord
from tilewright.records.document import Document
from tilewright.records.failure import FailureRecord, describe_failure
from tilewright.records.input_file import MAX_TEXT_BYTES, read_file, read_text_file
from tilewright.records.machine_check import MachineCheckRecord
from tilewright.records.machine_import import ImportedField, MachineImportRecord
from tilewright.records.machine_show import MachineFigures, MachineShowRecord
from tilewright.records.probe import Breakdown, ProbeRecord, ProbeRow, SkippedCase
from tilewright.records.reader import read_record, told_if_contradictory
from tilewright.records.run import (
    LaunchRow,
    MachineOfRun,
    RunRecord,
    Totals,
    WhatRan,
)
from tilewright.records.run_parts import Bottleneck, RunParts
from tilewright.records.validate import OracleRow, ValidateRecord
from tilewright.records.versions import Versions, installed_version, installed_versions
from tilewright.records.whole_file import (
    check_target,
    check_targets,
    locked_target,
    whole_file,
    write_file,
)
from tilewright.records.writer import write_record

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
    "content_hash",
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
