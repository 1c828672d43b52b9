"""One digest for a run, whatever engine, process, hash seed or repetition it is."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.kinds import needs_both_engines
from tests.system.digests import SEEDS, WORKLOADS

ROOT = Path(__file__).parents[2]
HASH_SEEDS = ("0", "1", "4242")


def digests_of_process(hash_seed: str) -> dict[str, list[str]]:
    command = [sys.executable, "-m", "tests.system.digests"]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    finished = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    found: dict[str, list[str]] = json.loads(finished.stdout)
    return found


@needs_both_engines
def test_a_load_and_a_seed_have_one_digest_on_every_engine_and_in_every_process() -> None:
    processes = [digests_of_process(hash_seed) for hash_seed in HASH_SEEDS]
    gathered = {
        name: [digest for process in processes for digest in process[name]] for name in processes[0]
    }
    assert len(gathered) == len(WORKLOADS) * len(SEEDS)
    for name, digests in gathered.items():
        assert len(digests) == len(HASH_SEEDS) * 2 * 2, name  # two engines, twice each
        assert len(set(digests)) == 1, name
    assert len({digests[0] for digests in gathered.values()}) == len(gathered)  # no two are alike
