from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import ModelError
from tilewright.models.prompt import choose_token


def test_the_likeliest_token_is_chosen_and_the_lowest_of_equals() -> None:
    assert choose_token([0.5, 3.0, 3.0, -1.0]) == 1


@given(st.lists(st.floats(-30, 30), min_size=2, max_size=20), st.integers(0, 2**32 - 1))
def test_equal_seeds_draw_equal_tokens(logits: list[float], seed: int) -> None:
    first, second = (
        choose_token(logits, temperature=0.8, rng=np.random.default_rng(seed)) for _ in range(2)
    )
    assert first == second
    assert 0 <= first < len(logits)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_are_drawn_as_often_as_softmax_says(temperature: float) -> None:
    logits = np.array([0.0, 1.0, 2.0, -1e30])
    rng = np.random.default_rng(7)
    drawn = [choose_token(logits, temperature=temperature, rng=rng) for _ in range(4000)]
    expected = np.exp(logits / temperature) / np.exp(logits / temperature).sum()
    assert np.bincount(drawn, minlength=4) / 4000 == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("logits", [[np.nan, 1.0], [np.inf, 0.0], [[1.0, 2.0]]])
def test_logits_that_say_nothing_are_refused(logits: list[float]) -> None:
    with pytest.raises(ModelError, match="logits: found"):
        choose_token(logits)


@pytest.mark.parametrize("temperature", [-0.1, np.inf, np.nan])
def test_a_temperature_that_is_none_is_refused(temperature: float) -> None:
    with pytest.raises(ModelError, match="temperature: found"):
        choose_token([1.0], temperature=temperature, rng=np.random.default_rng(0))


def test_drawing_without_a_generator_is_refused() -> None:
    with pytest.raises(ModelError, match="a generator to draw from"):
        choose_token([1.0], temperature=1.0)


class Lowest:
    """A generator that draws the lowest number there is."""

    def random(self) -> float:
        return 0.0


def test_a_token_of_no_probability_is_never_drawn() -> None:
    rng = cast(np.random.Generator, Lowest())
    assert choose_token([-1e30, 0.0, 0.0], temperature=1.0, rng=rng) == 1
