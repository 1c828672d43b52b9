"""Which tests run each line of the package, and how long each of them takes."""

import hashlib
import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import coverage

from tools.mutate.copy import Copy

PLUGIN = "tools.mutate.record_tests"
DATA_FILE, SECONDS = "coverage_data", "seconds_of_tests"


@dataclass(frozen=True, slots=True)
class CoverageMap:
    """Tests by file and line; a test is a node id without parameters."""

    source: str  # the hash of the sources that were run
    tests: Mapping[str, Mapping[str, list[str]]]  # by path, then by line
    seconds: Mapping[str, float]  # by test

    def tests_of(self, path: str, line: int) -> list[str]:
        """Return the tests that run a line, the shortest first."""
        found = self.tests.get(path, {}).get(str(line), [])
        return sorted(found, key=lambda test: (self.seconds.get(test, 0.0), test))


def read_map(file: Path) -> CoverageMap | None:
    """Return the map of a file, or None if there is no such file."""
    return CoverageMap(**json.loads(file.read_text("utf-8"))) if file.exists() else None


def source_digest(root: Path) -> str:
    """Return a hash of all Python sources of the package."""
    found = hashlib.sha256()
    for path in sorted((root / "src").rglob("*.py")):
        found.update(f"{path.relative_to(root)}\0{path.read_text('utf-8')}\0".encode())
    return found.hexdigest()


def take_map(copy: Copy, file: Path, source: str, workers: int) -> CoverageMap:
    """Run all tests in ``copy`` under coverage, write the map to ``file`` and return it.

    A test that fails because coverage makes it slow is no hindrance: its lines are known, too.
    """
    data = copy.folder / DATA_FILE
    config = copy.folder / "coverage.ini"
    config.write_text(
        "[run]\nsource = src/tilewright\nconcurrency = greenlet, thread\npatch = subprocess\n"
        f"parallel = true\ndata_file = {data}\n"
    )
    run = [str(copy.python), "-m", "pytest", "-q", "-n", str(workers), "-p", PLUGIN, "--timeout=0"]
    environment = {
        **os.environ,
        "COVERAGE_PROCESS_START": str(config),
        "TEST_SECONDS": str(copy.folder / SECONDS),
    }
    status = subprocess.run(run, cwd=copy.folder, env=environment, check=False).returncode
    if status not in (0, 1):  # all passed, some failed
        raise RuntimeError(f"pytest ended with status {status}; its output is above")
    combined = coverage.Coverage(data_file=str(data), config_file=str(config))
    combined.combine()
    found: dict[str, dict[str, list[str]]] = {}
    recorded = combined.get_data()
    for path in sorted(recorded.measured_files()):
        lines = recorded.contexts_by_lineno(path)
        found[Path(path).relative_to(copy.folder).as_posix()] = {
            str(line): sorted(filter(None, contexts)) for line, contexts in lines.items()
        }
    taken = CoverageMap(source, found, _seconds(copy.folder))
    unfinished = file.with_suffix(".new")
    unfinished.write_text(json.dumps(asdict(taken)))
    unfinished.replace(file)
    return taken


def _seconds(folder: Path) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    for file in folder.glob(f"{SECONDS}.*"):
        for test, seconds in json.loads(file.read_text("utf-8")).items():
            total[test] += seconds
    return dict(total)
