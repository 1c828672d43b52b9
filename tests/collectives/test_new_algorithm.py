"""One algorithm more than the package has: what docs/architecture.md says about it, done."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.collectives.worlds import run_ranks
from tilewright.collectives import algorithms
from tilewright.collectives.algorithms import ALGORITHMS, load_algorithms
from tilewright.errors import RegistryError
from tilewright.host import DPPolicy

STAR = '''
"""All-reduce over a star: everything goes through rank 0."""

from tilewright.collectives.algorithm import Algorithm
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan, Script


def plan_star(call: Call, lane: int) -> Plan:
    del lane
    script = Script(call.num_ranks, call.num_ranks)
    for rank in range(1, call.num_ranks):
        script.move(0, rank, 0, range(call.num_ranks), combines=True)
        script.move(1, 0, rank, range(call.num_ranks), combines=False)
    return script.plan()


ALGORITHMS = (Algorithm({name!r}, frozenset((Operation.ALL_REDUCE,)), plan_star),)
'''
RANKS, SIZE = 4, 96


def place(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str) -> None:
    """Put a file beside those of the package; its name is the algorithm's."""
    (folder / "added_star.py").write_text(STAR.format(name=name), encoding="utf-8")
    monkeypatch.setattr(algorithms, "__path__", [*algorithms.__path__, str(folder)])
    added = f"{algorithms.__name__}.added_star"
    monkeypatch.setitem(sys.modules, added, sys)  # so that it is gone again afterwards
    del sys.modules[added]


def test_a_file_among_the_algorithms_is_all_that_a_new_one_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(monkeypatch, tmp_path, "star")
    table = load_algorithms()
    assert list(table) == [*ALGORITHMS, "star"]
    found: dict[int, Any] = {}

    def program(rank: int, torch: Any, dist: Any) -> None:
        values = np.arange(SIZE, dtype=np.float32) * (rank + 1)
        tensor = torch.empty((SIZE,), "f32", dp=DPPolicy(cube="row_wise", pe="row_wise"))
        dist.all_reduce(tensor.copy_(values))
        found[rank] = tensor.numpy()

    run_ranks(RANKS, program, algorithm="star", algorithms=table)
    total = np.arange(SIZE, dtype=np.float32) * sum(range(1, RANKS + 1))
    assert all(np.array_equal(found[rank], total) for rank in range(RANKS))


def test_a_file_whose_algorithm_has_a_name_that_is_taken_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(monkeypatch, tmp_path, "ring")
    with pytest.raises(RegistryError, match="two algorithms 'ring'"):
        load_algorithms()
