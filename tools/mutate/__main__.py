"""``make mutate``: break the source in one place at a time and see if a test fails.

A seeded sample of places is drawn; at each of them one operator, number or word changes. Tests
that run the broken line are taken from a map of coverage, which is made first (half an hour) and
again when the source has changed or --map says so. A mutant that no test finds has survived; it is
listed with its reason in survivors.toml. Exits with status 1 if fewer than --killed per cent are
found.
"""

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tools.mutate.copy import Copy, make_copy
from tools.mutate.coverage_map import CoverageMap, read_map, source_digest, take_map
from tools.mutate.sample import Mutant, draw_mutants

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "mutate"
MAP = BUILD / "map.json"
REASONS = Path(__file__).parent / "survivors.toml"
PACKAGES = ("engine", "device", "language", "executor", "memory", "collectives", "attention")
MAX_SECONDS = 240.0  # of tests for one mutant, as long as they take unbroken
MAX_TESTS = 300
STATUS_OF_BROKEN_IMPORTS = (2, 4)  # of pytest: of a test file, and of a conftest.py
SLOWDOWN = 4  # a broken program may take longer, and the machine may be busy


@dataclass(frozen=True, slots=True)
class Verdict:
    mutant: Mutant
    num_tests: int
    killed_by: str | None  # None: survived


def main() -> int:
    options = _options()
    packages = options.only or PACKAGES
    copies = [make_copy(ROOT, BUILD / f"copy{index}") for index in range(options.jobs)]
    digest = source_digest(ROOT)
    known = read_map(MAP)
    if options.map or known is None or known.source != digest:
        print("making the map of coverage: all tests run once", flush=True)
        known = take_map(copies[0], MAP, digest, options.jobs)
    mutants = draw_mutants(ROOT, packages, options.seed, options.count)
    verdicts = _try_all(mutants, copies, known)
    reasons = tomllib.loads(REASONS.read_text("utf-8"))
    killed = sum(each.killed_by is not None for each in verdicts)
    for each in verdicts:
        if each.killed_by is None:
            reason = reasons.get(each.mutant.label, "no reason is known")
            print(f"survived  {each.mutant.label}, {each.num_tests} tests: {reason}")
    share = 100 * killed / len(verdicts)
    print(f"seed {options.seed}: {killed} of {len(verdicts)} mutants killed, {share:.0f} %")
    return int(share < options.killed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--count", type=int, default=100, help="mutants in the sample")
    parser.add_argument("--jobs", type=int, default=2, help="mutants that are tried at a time")
    parser.add_argument("--only", nargs="*", choices=PACKAGES, help="packages to draw from")
    parser.add_argument("--map", action="store_true", help="make the map of coverage anew")
    parser.add_argument("--killed", type=float, default=92, help="per cent that must be found")
    return parser.parse_args()


def _try_all(
    mutants: Sequence[Mutant], copies: Sequence[Copy], known: CoverageMap
) -> list[Verdict]:
    idle: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        idle.put(copy)

    def attempt(mutant: Mutant) -> Verdict:
        copy = idle.get()
        try:
            return _try_one(mutant, copy, known)
        finally:
            idle.put(copy)

    verdicts = []
    with ThreadPoolExecutor(len(copies)) as pool:
        for verdict in pool.map(attempt, mutants):
            verdicts.append(verdict)
            outcome = verdict.killed_by or "SURVIVED"
            print(f"{len(verdicts):>4} {verdict.mutant.label}: {outcome}", flush=True)
    return verdicts


def _try_one(mutant: Mutant, copy: Copy, known: CoverageMap) -> Verdict:
    """Break one file of the copy, run the tests that pass through the line, and mend the file."""
    tests, seconds = _chosen(known, mutant)
    file = copy.folder / mutant.path
    text = (ROOT / mutant.path).read_text("utf-8")
    file.write_text(mutant.source(text), "utf-8")
    try:
        return Verdict(mutant, len(tests), _killer(copy, tests, seconds))
    finally:
        file.write_text(text, "utf-8")


def _chosen(known: CoverageMap, mutant: Mutant) -> tuple[list[str], float]:
    """Return the shortest tests of the line, at most so many as the limits allow, and their time.

    A line that runs at import alone has no test in the map: the package's own tests are taken.
    """
    chosen: list[str] = []
    seconds = 0.0
    for test in known.tests_of(mutant.path, mutant.line):
        seconds += known.seconds.get(test, 0.0)
        if chosen and (seconds > MAX_SECONDS or len(chosen) == MAX_TESTS):
            break
        chosen.append(test)
    if not chosen:
        return ["/".join(("tests", *Path(mutant.path).parts[2:-1]))], MAX_SECONDS
    return chosen, seconds


def _killer(copy: Copy, tests: Sequence[str], seconds: float) -> str | None:
    """Return the first test that fails, or None if all pass."""
    arguments = copy.folder / "tests.txt"
    arguments.write_text("\n".join(tests))
    command = [str(copy.python), "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-rfE"]
    command += ["-p", "no:cacheprovider", f"@{arguments}"]
    limit = 60 + SLOWDOWN * seconds
    try:
        run = subprocess.run(
            command, cwd=copy.folder, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return f"no end within {limit:.0f} s"
    if run.returncode == 0:
        return None
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if not failed and run.returncode not in STATUS_OF_BROKEN_IMPORTS:
        raise RuntimeError(f"pytest ended with status {run.returncode}: {run.stdout}{run.stderr}")
    return failed[0] if failed else "an import fails"


if __name__ == "__main__":
    sys.exit(main())
