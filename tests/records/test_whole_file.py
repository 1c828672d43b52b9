"""Files that are there whole or not at all."""

import os
from pathlib import Path

import pytest

from tests.records.full_disk import fill_disk, needs_full
from tilewright.errors import RecordError
from tilewright.records import check_target, whole_file, write_file


def test_a_file_appears_when_its_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with whole_file(path, "trace") as file:
        file.write(b"first, ")
        file.write(b"second")
        assert not path.exists()
    assert path.read_bytes() == b"first, second"
    assert os.listdir(tmp_path) == ["trace"]


def write_and_raise(path: Path, error: BaseException, num_bytes: int = 1) -> None:
    with whole_file(path, "trace") as file:
        file.write(b"n" * num_bytes)
        raise error


@pytest.mark.parametrize("error", [KeyError("of a user"), KeyboardInterrupt()])
def test_an_error_inside_the_block_goes_on_and_leaves_the_older_file(
    tmp_path: Path, error: BaseException
) -> None:
    path = tmp_path / "trace"
    write_file(path, b"older", "trace")
    with pytest.raises(type(error)):
        write_and_raise(path, error)
    assert path.read_bytes() == b"older"
    assert os.listdir(tmp_path) == ["trace"]


@needs_full
def test_a_disk_that_is_full_is_told_where_it_is_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk(monkeypatch)
    text = r"found a target that cannot be written \(No space left on device\), .* for the trace"
    with pytest.raises(RecordError, match=text):
        write_and_raise(tmp_path / "trace", KeyError("not reached"), num_bytes=100_000)
    with pytest.raises(RecordError, match=text):
        write_file(tmp_path / "trace", b"less than a buffer has", "trace")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["/", "a\0b", "missing/a"])
def test_a_path_that_cannot_be_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordError, match="found a target that cannot be written"):
        write_file(tmp_path / name, b"", "page")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "found"),
    [("", "a directory"), ("no/page.md", "no directory "), ("closed/page.md", "a directory ")],
)
def test_a_target_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, found: str
) -> None:
    (tmp_path / "closed").mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: "closed" not in str(path) and mode > 0)
    with pytest.raises(RecordError, match=f"found {found}"):
        check_target(tmp_path / name, "page")
    check_target(tmp_path / "page.md", "page")
    assert [path.name for path in tmp_path.iterdir()] == ["closed"]
