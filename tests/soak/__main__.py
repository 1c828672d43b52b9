"""``make soak``: long use of every kind at a time, then whether memory stayed flat.

Ends with 1 if the memory of a scenario grew, a file was not valid or anything was raised.
"""

import argparse
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.soak.observe import Observation, observe
from tests.soak.scenarios import SCENARIOS

NUM_PROCESSES = 2
MEBIBYTE = 2**20


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="wall time of the whole run")
    parser.add_argument("--only", nargs="*", choices=SCENARIOS, help="scenarios to run")
    options = parser.parse_args()
    names = [name for name in SCENARIOS if name in (options.only or SCENARIOS)]
    num_rounds = -(-len(names) // NUM_PROCESSES)
    seconds = options.seconds / num_rounds
    _say(f"{'scenario':<14}{'steps':>9}{'MiB before':>12}{'MiB after':>12}{'B a step':>10}  found")
    with ProcessPoolExecutor(NUM_PROCESSES, get_context("spawn"), max_tasks_per_child=1) as pool:
        futures = {name: pool.submit(observe, name, seconds) for name in names}
        outcomes = [
            _show(name, future.exception() or future.result()) for name, future in futures.items()
        ]
    return 0 if all(outcomes) else 1


def _show(name: str, outcome: Observation | BaseException) -> bool:
    """Print the row of a scenario; return whether it holds."""
    if isinstance(outcome, BaseException):
        _say(f"{name:<14}{'':>43}  {type(outcome).__name__}")
        _say("".join(traceback.format_exception(outcome)))
        return False
    sizes = f"{outcome.before_bytes / MEBIBYTE:>12.1f}{outcome.after_bytes / MEBIBYTE:>12.1f}"
    verdict = "flat" if outcome.is_flat else f"grew beyond {outcome.allowed_bytes} bytes"
    _say(f"{name:<14}{outcome.num_steps:>9}{sizes}{outcome.growth_per_step:>10.0f}  {verdict}")
    return outcome.is_flat


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
