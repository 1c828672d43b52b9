import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.models.peer import transformers
from tilewright.errors import ModelError
from tilewright.models.build import split_pairs
from tilewright.models.forward import rotate
from tilewright.models.rope import (
    DivisorScaling,
    Llama3Scaling,
    RopeSpec,
    YarnScaling,
)

Floats = npt.NDArray[np.float64]


def turned(spec: RopeSpec, heads: Floats, first: int) -> Floats:
    cosines, sines = spec.turns(np.arange(first, first + heads.shape[0]))
    return np.asarray(rotate(heads, cosines, sines))


@given(
    st.integers(1, 16).map(lambda half: 2 * half),
    st.integers(0, 2000),
    st.integers(0, 2000),
    st.integers(0, 2**32 - 1),
)
def test_a_dot_product_depends_on_the_distance_alone(
    width: int, position: int, shift: int, seed: int
) -> None:
    query, key = np.random.default_rng(seed).standard_normal((2, 1, 1, width))
    spec = RopeSpec(base=10_000.0, width=width)
    near = (turned(spec, query, position + 7) * turned(spec, key, position)).sum()
    far = (turned(spec, query, position + shift + 7) * turned(spec, key, position + shift)).sum()
    assert near == pytest.approx(far, abs=1e-8)


def test_the_first_token_is_not_turned() -> None:
    heads = np.random.default_rng(1).standard_normal((1, 3, 8))
    assert np.array_equal(turned(RopeSpec(base=1e4, width=8), heads, 0), heads)


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_llama3_frequencies_are_those_of_another_implementation(factor: float) -> None:
    parameters = {
        "rope_type": "llama3",
        "rope_theta": 500_000.0,
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    config = transformers.LlamaConfig(
        head_dim=128, rope_parameters=parameters, max_position_embeddings=131_072
    )
    expected, _ = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](
        config, torch.device("cpu")
    )
    spec = RopeSpec(base=500_000.0, width=128, scaling=Llama3Scaling(factor=factor))
    assert spec.frequencies == pytest.approx(expected.double().numpy(), rel=1e-5)
    assert spec.amplitude == 1.0


@pytest.mark.parametrize(("mscale", "mscale_all"), [(1.0, 1.0), (0.707, 0.707), (1.0, 0.5)])
def test_yarn_frequencies_are_those_of_another_implementation(
    mscale: float, mscale_all: float
) -> None:
    parameters = {
        "rope_type": "yarn",
        "rope_theta": 10_000.0,
        "factor": 40.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "mscale": mscale,
        "mscale_all_dim": mscale_all,
        "original_max_position_embeddings": 4096,
    }
    config = transformers.DeepseekV3Config(
        rope_parameters=parameters, max_position_embeddings=163_840
    )
    expected, amplitude = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["yarn"](
        config, torch.device("cpu")
    )
    scaling = YarnScaling(factor=40.0, original_context=4096, mscale=mscale, mscale_all=mscale_all)
    spec = RopeSpec(base=10_000.0, width=64, scaling=scaling)
    assert spec.frequencies == pytest.approx(expected.double().numpy(), rel=1e-5)
    assert spec.amplitude == pytest.approx(amplitude)


def test_given_divisors_divide_each_frequency() -> None:
    plain = RopeSpec(base=1e4, width=4)
    spec = RopeSpec(base=1e4, width=4, scaling=DivisorScaling((1.0, 8.0)))
    assert (spec.frequencies / plain.frequencies).tolist() == [1.0, 0.125]


@pytest.mark.parametrize("divisors", [(1.0,), (1.0, 0.0), (1.0, 2.0, 3.0)])
def test_divisors_that_do_not_fit_the_width_are_refused(divisors: tuple[float, ...]) -> None:
    with pytest.raises(ModelError, match=r"rope\.scaling"):
        RopeSpec(base=1e4, width=4, scaling=DivisorScaling(divisors))


@pytest.mark.parametrize(("base", "width"), [(0.0, 8), (float("nan"), 8), (1e4, 7), (1e4, 0)])
def test_an_impossible_rope_is_refused(base: float, width: int) -> None:
    with pytest.raises(ModelError, match=r"rope\."):
        RopeSpec(base=base, width=width)


def test_pairs_side_by_side_and_halves_give_the_same_dot_products() -> None:
    rng = np.random.default_rng(3)
    width, hidden = 8, 5
    query, key = rng.standard_normal((2, 2 * width, hidden))
    token = rng.standard_normal((2, hidden))
    spec = RopeSpec(base=1e4, width=width)
    cosines, sines = spec.turns(np.array([4, 9]))

    def pairwise(rows: Floats) -> Floats:
        heads = (token @ rows.T).reshape(2, 2, width // 2, 2)
        even, odd = heads[..., 0], heads[..., 1]
        turn = cosines[:, None], sines[:, None]
        return np.stack([even * turn[0] - odd * turn[1], odd * turn[0] + even * turn[1]], axis=-1)

    def by_halves(rows: Floats) -> Floats:
        heads = (token @ split_pairs(rows, width).T).reshape(2, 2, width)
        return np.asarray(rotate(heads, cosines, sines))

    expected = (pairwise(query) * pairwise(key)).sum(axis=(-1, -2))
    assert (by_halves(query) * by_halves(key)).sum(axis=-1) == pytest.approx(expected)
