"""Targets that are no plain files keep what they are, and nothing stays behind a kill."""

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tilewright.errors import RecordError, SpecError
from tilewright.records import (
    check_target,
    check_targets,
    locked_target,
    read_file,
    whole_file,
    write_file,
)

CONTENT = b"of a record"


def test_a_symbolic_link_stays_and_the_file_behind_it_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    file, link, second = tmp_path / "far" / "file", tmp_path / "link", tmp_path / "second"
    file.write_bytes(b"older")
    link.symlink_to("far/file")
    second.symlink_to(link)
    for path in (link, second):
        check_target(path, "record")
        write_file(path, CONTENT, "record")
        assert path.is_symlink()
        assert file.read_bytes() == CONTENT
        file.write_bytes(b"older")
    assert sorted(os.listdir(tmp_path)) == ["far", "link", "second"]
    assert os.listdir(tmp_path / "far") == ["file"]


def test_a_link_to_nothing_gets_its_file(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("new")
    write_file(link, CONTENT, "record")
    assert link.is_symlink()
    assert (tmp_path / "new").read_bytes() == CONTENT


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("link")
    with pytest.raises(RecordError, match=r"cannot be written .*symbolic links"):
        check_target(link, "record")
    with pytest.raises(RecordError, match=r"cannot be written .*symbolic links"):
        write_file(link, b"", "record")
    assert link.is_symlink()


def test_a_pipe_gets_all_bytes_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)  # a pipe without a writer is at its end
    os.set_blocking(reader, True)
    large = CONTENT * 20_000  # more than a pipe holds

    def read() -> None:
        with open(reader, "rb") as file:
            found.append(file.read(len(large)))

    thread = threading.Thread(target=read)
    check_target(pipe, "record")
    thread.start()
    write_file(pipe, large, "record")
    thread.join(timeout=30)
    os.close(writer)
    assert found == [large]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_pipe_that_nobody_reads_or_writes_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(RecordError, match="a pipe that nobody reads"):
        write_file(pipe, CONTENT, "record")
    assert read_file(pipe, "a machine file", SpecError) == b""
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_takes_what_is_written_and_stays() -> None:
    null = Path("/dev/null")
    check_target(null, "record")
    write_file(null, CONTENT, "record")
    assert stat.S_ISCHR(null.stat().st_mode)
    with pytest.raises(RecordError, match="No space left on device"):
        write_file(Path("/dev/full"), CONTENT, "record")
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_a_socket_is_refused_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket has a short limit
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for act in (check_target, lambda path, what: write_file(path, b"", what)):
            with pytest.raises(RecordError, match=r"cannot be written \(a socket\)"):
                act(Path("socket"), "record")
        assert Path("socket").is_socket()


@pytest.mark.parametrize("mode", ["ab", "wb"])
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_as_a_file_is_written_into_and_not_replaced(
    tmp_path: Path, name: str, mode: str
) -> None:
    log = tmp_path / "log"
    program = (
        "import pathlib, sys; from tilewright.records import write_file;"
        "print('before', flush=True);"
        "write_file(pathlib.Path(sys.argv[1]), b'record\\n', 'record'); print('after')"
    )
    with log.open(mode) as stream:
        subprocess.run([sys.executable, "-c", program, name], stdout=stream, check=True)
    assert log.read_text() == "before\nrecord\nafter\n"


def test_two_outputs_in_one_file_are_refused_and_in_one_device_are_not(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to("file")
    for other in (file, link, tmp_path / ".." / tmp_path.name / "file"):
        with pytest.raises(RecordError, match="found the file of the record, expected another"):
            check_targets({"record": file, "trace": other})
    check_targets({"record": file, "trace": tmp_path / "other", "plot": None})
    check_targets({"record": Path("/dev/null"), "trace": Path("/dev/null")})


@pytest.mark.parametrize("length", [256, 300])
def test_a_name_beyond_every_limit_is_one_error(tmp_path: Path, length: int) -> None:
    path = tmp_path / ("n" * length)
    for act in (check_target, lambda path, what: write_file(path, b"", what)):
        with pytest.raises(RecordError, match="File name too long"):
            act(path, "record")


def test_the_longest_name_of_a_file_system_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    check_target(path, "record")
    write_file(path, CONTENT, "record")
    assert path.read_bytes() == CONTENT


KILLED = """
import os, pathlib, signal, sys
from tilewright.records import whole_file
with whole_file(pathlib.Path(sys.argv[1]), "trace") as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_removed_by_the_next_and_nothing_else(
    tmp_path: Path,
) -> None:
    path = tmp_path / "trace"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 1
    (tmp_path / ".other.tmp").touch()
    write_file(tmp_path / "another", CONTENT, "record")
    assert len(os.listdir(tmp_path)) == 3
    write_file(path, CONTENT, "trace")
    assert sorted(os.listdir(tmp_path)) == [".other.tmp", "another", "trace"]


def test_a_file_that_is_still_under_way_is_not_removed_by_another_writer(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with whole_file(path, "trace") as slow:
        slow.write(b"slow")
        write_file(path, b"quick", "trace")
        assert path.read_bytes() == b"quick"
    assert path.read_bytes() == b"slow"
    assert os.listdir(tmp_path) == ["trace"]


COUNTING = """
import pathlib, sys
from tilewright.records import locked_target, write_file
path = pathlib.Path(sys.argv[1])
for _ in range(50):
    with locked_target(path, "state"):
        found = int(path.read_bytes()) if path.exists() else 0
        write_file(path, str(found + 1).encode(), "state")
"""


def test_processes_that_read_and_write_under_a_lock_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state"
    command = [sys.executable, "-c", COUNTING, str(path)]
    for process in [subprocess.Popen(command) for _ in range(3)]:
        assert process.wait(timeout=50) == 0
    assert path.read_bytes() == b"150"
    assert os.listdir(tmp_path) == ["state"]


def test_what_is_to_be_read_back_is_no_device() -> None:
    with (
        pytest.raises(RecordError, match="a pipe or a device"),
        locked_target(Path("/dev/null"), "state"),
    ):
        pass


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full"])
def test_a_file_without_an_end_is_refused_with_the_limit(device: str) -> None:
    with pytest.raises(SpecError, match="more than 1000 bytes, expected a thing of at most 1000"):
        read_file(Path(device), "a thing", SpecError, most_bytes=1000)


@pytest.mark.parametrize("name", ["none", "a\0b", "n" * 300, "."])
def test_a_file_that_cannot_be_read_is_one_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(SpecError, match="a file that cannot be read"):
        read_file(tmp_path / name, "a thing", SpecError)
