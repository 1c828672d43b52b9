"""Programs for torch.distributed give on a machine what they give on torch with gloo."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.collectives.programs import PROGRAMS
from tests.collectives.worlds import run_ranks

WORLD = 3
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def on_gloo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """By program what each rank ends with."""
    folder: Path = tmp_path_factory.mktemp("gloo")
    command = [sys.executable, "-m", "tests.collectives.programs.gloo", str(WORLD), str(folder)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    ranks = [pickle.loads((folder / f"rank{rank}").read_bytes()) for rank in range(WORLD)]
    return {name: [results[name] for results in ranks] for name in PROGRAMS}


@pytest.mark.parametrize("rank_is_pe", [False, True], ids=["rank is a SIP", "rank is a PE"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_values_of_torch(
    name: str, rank_is_pe: bool, on_gloo: dict[str, list[Any]]
) -> None:
    results: dict[int, Any] = {}

    def program(rank: int, torch: Any, dist: Any) -> None:
        results[rank] = PROGRAMS[name](torch, dist, rank, WORLD)

    run_ranks(WORLD, program, rank_is_pe=rank_is_pe)
    for rank, expected in enumerate(on_gloo[name]):
        assert_equal(results[rank], expected)


def assert_equal(found: Any, expected: Any) -> None:
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_equal(one, other)
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected
