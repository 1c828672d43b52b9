"""``make golden``: take the results of commands and random kernels, and compare them.

Each field of a result is held to a hash in digests.json; with --record the hashes are written anew.
The results themselves stay in build/golden, so that a difference is shown beside what was there.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.processes import in_processes, num_cores
from tools.golden.cases import Result, cases, in_a_folder
from tools.golden.fields import digests, read_table

HERE = Path(__file__).parent
DIGESTS, TABLE = HERE / "digests.json", HERE / "fields.toml"
KEPT = HERE.parents[1] / "build" / "golden"
MAX_DIFFERENCES = 5  # shown of a field
MISSING = "nothing"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make golden", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write digests.json anew")
    parser.add_argument("--only", default="", help="cases whose names begin so")
    options = parser.parse_args()
    found = _take(options.only)
    for name, result in found.items():
        _write(KEPT / ("recorded" if options.record else "found") / f"{name}.json", result)
    if options.record:
        recorded = json.loads(DIGESTS.read_text("utf-8")) if options.only else {}
        recorded |= {name: digests(result) for name, result in found.items()}
        _write(DIGESTS, dict(sorted(recorded.items())))
        print(f"{len(found)} cases recorded in {DIGESTS}")
        return 0
    return _compare(json.loads(DIGESTS.read_text("utf-8")), found, options.only)


def _take(only: str) -> dict[str, Result]:
    """Run the cases and return their results with the names of the recorded fields."""
    table = read_table(TABLE)
    chosen = {name: case for name, case in cases(table).items() if name.startswith(only)}

    def run(name: str) -> Result:
        result: Result = json.loads(json.dumps(in_a_folder(chosen[name])))
        return dict(table.as_recorded(result))

    found: dict[str, Result] = {}
    for name, result in in_processes(run, list(chosen), num_cores()):
        found[name] = result
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{len(found)} of {len(chosen)}: {name:<60.60}")
    return found


def _compare(recorded: Mapping[str, Any], found: Mapping[str, Result], only: str) -> int:
    """Print what differs and return the exit status."""
    expected = {name: fields for name, fields in recorded.items() if name.startswith(only)}
    num_fields = num_different = 0
    for name in sorted(expected.keys() | found.keys()):
        before, now = expected.get(name, {}), digests(found.get(name, {}))
        num_fields += len(before)
        for field in sorted(before.keys() | now.keys()):
            if before.get(field) != now.get(field):
                num_different += 1
                print(f"{name}: {field} differs")
                _show(name, field, found.get(name, {}))
    print(f"{len(found)} cases, {num_fields} fields, {num_different} differ")
    return 1 if num_different else 0


def _show(name: str, field: str, result: Result) -> None:
    """Print the first differences of a field, if the recorded result was kept here."""
    kept = KEPT / "recorded" / f"{name}.json"
    if kept.exists():
        before = json.loads(kept.read_text("utf-8"))
        lines = _differences(field, before.get(field, MISSING), result.get(field, MISSING))
        print("\n".join(f"  {line[:400]}" for line in lines[:MAX_DIFFERENCES]))


def _differences(path: str, before: Any, now: Any) -> list[str]:
    """Return a line for each leaf that differs."""
    match before, now:
        case dict(), dict():
            names = [*before, *(name for name in now if name not in before)]
            pairs = [(f".{n}", before.get(n, MISSING), now.get(n, MISSING)) for n in names]
        case list(), list() if len(before) == len(now):
            pairs = [(f"[{i}]", *both) for i, both in enumerate(zip(before, now, strict=True))]
        case _:
            return [] if before == now else [f"{path}: {before} -> {now}"]
    return [line for part, b, n in pairs for line in _differences(path + part, b, n)]


def _write(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=0, sort_keys=True)
    file.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
