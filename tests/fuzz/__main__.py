"""``make fuzz``: random inputs for a time, then how many there were and what was found.

Ends with 1 if something was found. A finding is repeated by its generator, seed and index.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from tests.fuzz.session import Finding, Session
from tests.fuzz.table import GENERATORS
from tests.fuzz.worker import Task

__all__ = ("main",)

MOST_LINES = 40  # of a finding's text


def main() -> int:
    options = _options()
    chosen = {name: each for name, each in GENERATORS.items() if name in (options.only or [name])}
    session = Session(chosen, options.seed)
    if options.index is not None:
        session.tell = lambda finding: _show(finding, options.seed, most_lines=10_000)
        session.run_inputs([Task(name, options.index) for name in chosen])
    else:
        session.tell = lambda finding: _show(finding, options.seed)
        session.run_for(options.seconds)
    _print_counts(session)
    return 1 if session.findings else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200, help="wall time of the session")
    parser.add_argument("--seed", type=int, default=0, help="of all inputs")
    parser.add_argument("--only", nargs="*", choices=GENERATORS, help="generators to run")
    parser.add_argument("--index", type=int, help="run this input of each generator alone")
    options = parser.parse_args()
    if options.index is not None and not options.only:
        parser.error("--index needs --only")
    return options


def _show(finding: Finding, seed: int, most_lines: int = MOST_LINES) -> None:
    name, index = finding.task.generator, finding.task.index
    _say(f"\nFINDING: repeat with: make fuzz ONLY={name} SEED={seed} INDEX={index}")
    lines = finding.text.encode("utf-8", "backslashreplace").decode().splitlines()
    if len(lines) > most_lines:
        lines = [*lines[:5], "...", *lines[-(most_lines - 6) :]]
    _say("\n".join(f"  {line[:400]}" for line in lines))


def _print_counts(session: Session) -> None:
    heads = f"{'inputs':>9}{'CPU s':>9}{'findings':>10}{'slowest':>16}"
    _say(f"\n{'generator':<14}{heads}  seed {session.seed}")
    for name, share in session.shares.items():
        slowest = f"{share.slowest_seconds:.1f} s at {share.slowest_index}"
        counts = f"{share.inputs:>9}{share.seconds:>9.1f}{share.findings:>10}{slowest:>16}"
        _say(f"{name:<14}{counts}  {GENERATORS[name].what}")
    total = sum(share.inputs for share in session.shares.values())
    _say(f"{'all':<14}{total:>9}{'':>9}{len(session.findings):>10}")
    places = Counter(_signature(finding) for finding in session.findings)
    for place, count in places.most_common():
        _say(f"{count:>6} times: {place}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _signature(finding: Finding) -> str:
    """Return a line that findings of one cause have in common."""
    lines = [line.strip() for line in finding.text.splitlines() if line.strip()]
    files = [line for line in lines if line.startswith("File ")]
    last = files[-1].replace(str(Path.cwd()), "") if files else ""
    return f"{finding.task.generator}: {last} {lines[-1] if lines else ''}"[:300]


if __name__ == "__main__":
    sys.exit(main())
