import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records.run_records import run_record
from tilewright.canonical import content_hash
from tilewright.errors import RecordError
from tilewright.records import (
    FailureRecord,
    RunParts,
    RunRecord,
    WhatRan,
    canonical_json,
    read_record,
    told_if_contradictory,
    write_record,
)
from tilewright.records.document import JsonScalar
from tilewright.records.explain import PartShare

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
texts = st.text(st.characters(codec="utf-8"))
values = st.recursive(
    scalars | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=10
)


@given(values)
def test_canonical_json_reads_back_as_the_same_data(value: object) -> None:
    assert json.loads(canonical_json(value)) == value


@given(st.dictionaries(texts, scalars))
def test_the_order_of_keys_changes_neither_bytes_nor_hash(value: dict[str, object]) -> None:
    backwards = dict(reversed(list(value.items())))
    assert canonical_json(backwards) == canonical_json(value)
    assert content_hash(backwards) == content_hash(value)


def test_the_hash_is_sha256_of_the_canonical_bytes() -> None:
    assert content_hash({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes", "\ud800"])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(RecordError, match="plain JSON data"):
        canonical_json({"value": value})


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
