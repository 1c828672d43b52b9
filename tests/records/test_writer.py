import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records.run_records import run_record
from tilewright.errors import RecordError
from tilewright.records import (
    RunParts,
    RunRecord,
    WhatRan,
    canonical_json,
    read_record,
    write_record,
)
from tilewright.records.document import JsonScalar

names = st.text(st.characters(codec="utf-8"), max_size=8)
times_ps = st.integers(0, 2**63)
shares = st.floats(0, 1)
sha256s = st.text("0123456789abcdef", min_size=64, max_size=64)


@st.composite
def run_records(draw: st.DrawFn) -> RunRecord:
    parts = RunParts(
        gemm=draw(times_ps), vector=draw(times_ps), memory_read=draw(times_ps), other=draw(times_ps)
    )
    scalars: st.SearchStrategy[dict[str, JsonScalar]] = st.dictionaries(
        names, st.none() | names | st.integers() | st.booleans() | shares
    )
    return run_record(
        parts.total_ps,
        what=WhatRan(command=draw(names), program=draw(names), options=draw(scalars)),
        parameters=draw(scalars),
        machine_hash=draw(sha256s),
        seed=draw(st.none() | st.integers(0, 2**64)),
        breakdown_ps=parts,
        utilisation=draw(st.dictionaries(names, shares, max_size=3)),
        bounds_ps=draw(st.dictionaries(names, st.integers(0, parts.total_ps), max_size=3)),
        counters=draw(st.dictionaries(names, times_ps, max_size=3)),
    )


def newer_of(record: RunRecord) -> RunRecord:
    return record.model_copy(update={"seed": 2})


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records")


@given(record=run_records())
def test_a_written_record_reads_back_equal_and_writes_the_same_bytes(
    directory: Path, record: RunRecord
) -> None:
    path = directory / "run.json"
    write_record(path, record)
    copy = read_record(path, RunRecord)
    assert copy == record
    assert path.read_bytes() == canonical_json(copy) + b"\n"


def test_an_older_file_is_replaced_and_nothing_else_is_left(
    tmp_path: Path, record: RunRecord
) -> None:
    path = tmp_path / "run.json"
    write_record(path, record)
    write_record(path, newer_of(record))
    assert read_record(path, RunRecord) == newer_of(record)
    assert os.listdir(tmp_path) == ["run.json"]


def test_a_target_that_cannot_be_written_is_named_and_nothing_is_left(
    tmp_path: Path, record: RunRecord
) -> None:
    (tmp_path / "run.json").mkdir()
    with pytest.raises(RecordError, match=r"run\.json: found a target that cannot be written"):
        write_record(tmp_path / "run.json", record)
    assert os.listdir(tmp_path) == ["run.json"]


def test_a_missing_directory_is_refused(tmp_path: Path, record: RunRecord) -> None:
    with pytest.raises(RecordError, match="No such file or directory"):
        write_record(tmp_path / "missing" / "run.json", record)


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_while_writing_keeps_the_older_file_whole(
    tmp_path: Path, record: RunRecord, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    path = tmp_path / "run.json"
    write_record(path, record)

    def fail(_descriptor: int) -> None:
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((RecordError, KeyboardInterrupt)):
        write_record(path, newer_of(record))
    assert read_record(path, RunRecord) == record
    assert os.listdir(tmp_path) == ["run.json"]


def test_a_record_whose_mapping_was_changed_is_not_written(
    tmp_path: Path, record: RunRecord
) -> None:
    record.counters["gathers"] = -1
    with pytest.raises(RecordError, match="greater than or equal to 0"):
        write_record(tmp_path / "run.json", record)
    assert os.listdir(tmp_path) == []
