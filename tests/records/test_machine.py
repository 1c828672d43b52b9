import json

from tilewright.records import MachineCheckRecord, canonical_json


def test_the_verdict_on_a_machine_has_the_fields_that_its_readers_rely_on() -> None:
    record = MachineCheckRecord(
        source="mine.yaml",
        overrides=("sip.count=4",),
        machine="mine",
        machine_hash="0" * 64,
        num_pes=512,
        warnings=("a buffer is small",),
    )
    assert json.loads(canonical_json(record)) == {
        "kind": "machine_check",
        "schema_version": 1,
        "source": "mine.yaml",
        "overrides": ["sip.count=4"],
        "machine": "mine",
        "machine_hash": "0" * 64,
        "num_pes": 512,
        "warnings": ["a buffer is small"],
    }
    assert MachineCheckRecord.model_validate_json(canonical_json(record)) == record
