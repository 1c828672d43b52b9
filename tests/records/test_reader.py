from pathlib import Path

import pytest

from tilewright.errors import RecordError
from tilewright.records import (
    FailureRecord,
    RunRecord,
    canonical_json,
    read_record,
    told_if_contradictory,
    write_record,
)
from tilewright.records.explain import PartShare


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"run\.json: found a file that cannot be read"):
        read_record(tmp_path / "run.json", RunRecord)


@pytest.mark.parametrize("kept", [0, 1, 40])
def test_a_cut_file_is_refused_as_incomplete(tmp_path: Path, record: RunRecord, kept: int) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(canonical_json(record)[:kept])
    with pytest.raises(RecordError, match="no complete JSON document"):
        read_record(path, RunRecord)


@pytest.mark.parametrize("content", ["[]", "7", '{"name": "something else"}', "\x00\x01"])
def test_a_foreign_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(RecordError, match=r"run\.json"):
        read_record(path, RunRecord)


def test_a_record_of_another_kind_is_refused_with_the_place_that_differs(
    tmp_path: Path, record: RunRecord
) -> None:
    path = tmp_path / "run.json"
    write_record(path, record)
    with pytest.raises(RecordError, match=r"expected a FailureRecord"):
        read_record(path, FailureRecord)


def test_a_record_of_another_kind_is_refused_by_its_own_kind(
    tmp_path: Path, record: RunRecord
) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(canonical_json(record).replace(b'"kind":"run"', b'"kind":"sweep"'))
    with pytest.raises(RecordError, match=r"other\.json: kind: found 'sweep' \(Input should be"):
        read_record(path, RunRecord)


def test_figures_that_contradict_each_other_are_told_with_their_files() -> None:
    files = (Path("a.json"), Path("b.json"))
    found = r"a\.json, b\.json: found figures that contradict each other \(division by zero\)"
    with pytest.raises(RecordError, match=found), told_if_contradictory(*files):
        raise ZeroDivisionError("division by zero")
    found = "found figures that contradict each other .*greater than or equal to 0"
    with pytest.raises(RecordError, match=found), told_if_contradictory(*files):
        PartShare(part="refresh", time_ps=-1, share=0.5)
