"""``make count``: instructions of six small cases under callgrind, beside recorded ones.

A count is that of one call: what Python needs to start, import and prepare it is taken off. The
same source and libraries give the same count within a tenth of a per cent, whatever else the
machine does. Exits with status 1 if a case takes over three per cent more than counts.json says;
--record writes that file anew, and the change that does so says why.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.count.cases import CASES

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).parent / "counts.json"
MAX_GROWTH = 0.03
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OPENBLAS_CORETYPE": "Haswell",  # the same instructions on every machine
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make count", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write counts.json anew")
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--jobs", type=int, default=2, help="cases that are counted at a time")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print(
            "make count: found no valgrind; install it, say: apt install valgrind", file=sys.stderr
        )
        return 2
    recorded: dict[str, int] = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    with ThreadPoolExecutor(options.jobs) as pool:
        found = dict(zip(options.only, pool.map(count, options.only), strict=True))
    if options.record:
        text = json.dumps(dict(sorted((recorded | found).items())), indent=1)
        RECORDED.write_text(f"{text}\n", "utf-8")
    growth = {name: found[name] / recorded.get(name, found[name]) - 1 for name in found}
    if options.json:
        print(json.dumps({"instructions": found, "growth": growth}, indent=1))
    else:
        for name, instructions in found.items():
            print(f"{name:<16}{instructions / 1e6:>10,.1f} million {growth[name]:>+8.2%}")
    return int(not options.record and any(each > MAX_GROWTH for each in growth.values()))


def count(name: str) -> int:
    """Return the instructions of one call of a case."""
    return _instructions(name, "once") - _instructions(name, "not")


def _instructions(name: str, call: str) -> int:
    program = [sys.executable, "-m", "tools.count.cases", name, call]
    environment = {**os.environ, **ENVIRONMENT}
    options = {"cwd": ROOT, "env": environment, "check": True, "capture_output": True}
    with TemporaryDirectory() as folder:
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        run = subprocess.run([*tool, *program], text=True, **options)  # type: ignore[call-overload]
    found = re.search(r"Collected : (\d+)", run.stderr)
    if found is None:
        raise RuntimeError(f"callgrind collected nothing: {run.stderr}")
    return int(found[1])


if __name__ == "__main__":
    sys.exit(main())
