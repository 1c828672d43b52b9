"""A scenario of ``make soak``: growth is seen, and a short run of each scenario holds."""

from collections.abc import Iterator

import pytest

from tests.soak.observe import observe, observe_steps
from tests.soak.scenarios import SCENARIOS

LEAK_BYTES = 2**20


def steps(kept: list[bytearray], num_bytes: int) -> Iterator[None]:
    while True:
        kept.append(bytearray(b"x" * num_bytes))
        yield


def test_memory_that_grows_with_the_steps_is_not_flat() -> None:
    kept: list[bytearray] = []
    found = observe_steps(steps(kept, LEAK_BYTES), 0.3, kept_bytes=0)
    assert found.num_steps > 40  # a step takes far less than a millisecond
    assert not found.is_flat
    assert found.growth_per_step > LEAK_BYTES / 4


def test_memory_that_is_given_back_is_flat() -> None:
    def one_at_a_time() -> Iterator[None]:
        while True:
            kept: list[bytearray] = []
            next(steps(kept, LEAK_BYTES))
            yield

    assert observe_steps(one_at_a_time(), 0.3, kept_bytes=0).is_flat


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_first_steps_of_every_scenario_hold(name: str) -> None:
    assert observe(name, seconds=0.1).num_steps >= 1
