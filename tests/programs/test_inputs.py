"""Who takes part, and tensors on them."""

import numpy as np
import pytest

from tests.programs.small import MACHINE
from tilewright.errors import BenchError
from tilewright.host import RuntimeContext
from tilewright.programs.inputs import Draw, Team, deploy, reserve, team_of


def test_zero_stands_for_all() -> None:
    with RuntimeContext(MACHINE) as torch:
        assert team_of(torch, sips=0, cubes=0, pes=0) == Team(1, 4, 4)
        assert team_of(torch, cubes=3, pes=2) == Team(1, 3, 2)


@pytest.mark.parametrize("name", ["sips", "cubes", "pes"])
@pytest.mark.parametrize("count", [-1, 5])
def test_what_is_not_there_is_refused(name: str, count: int) -> None:
    with (
        RuntimeContext(MACHINE) as torch,
        pytest.raises(BenchError, match=f"{name}={count}, expected at most the"),
    ):
        team_of(torch, **{name: count})


def test_a_team_is_limited_by_the_parts_of_its_work() -> None:
    assert Team(1, 2, 8).at_most(pes=3) == Team(1, 2, 3)
    assert Team(1, 2, 8).at_most(pes=30).num_pes == 16


def test_tensors_are_placed_before_the_measured_time_with_their_values() -> None:
    with RuntimeContext(MACHINE) as torch:
        team = team_of(torch, cubes=2)
        values = np.arange(42, dtype=np.int32).reshape(21, 2)
        tensor = deploy(torch, "x", values, team.split(0))
        room = reserve(torch, "out", (3,), "f16", team.policy())
        np.testing.assert_array_equal(tensor.numpy(), values)
        assert not room.numpy().any()
        assert len(tensor.shards) == team.num_pes


def test_integers_are_the_same_with_and_without_values() -> None:
    drawn = []
    for data in (True, False):
        with RuntimeContext(MACHINE, data=data, seed=5) as torch:
            draw = Draw(torch)
            draw.normal((3, 4), "f16")
            drawn.append(draw.integers.permutation(100))
    np.testing.assert_array_equal(drawn[0], drawn[1])


def test_another_seed_draws_other_floats() -> None:
    arrays = []
    for seed in (1, 1, 2):
        with RuntimeContext(MACHINE, seed=seed) as torch:
            arrays.append(Draw(torch).normal((8,), "bf16"))
    np.testing.assert_array_equal(arrays[0], arrays[1])
    assert (arrays[0] != arrays[2]).any()
