import array_api_compat.numpy as xp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.models.feed_forward import choose_experts
from tilewright.models.shape import ExpertShape, GateKind


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from(GateKind),
    st.booleans(),
    st.data(),
    st.integers(0, 2**32 - 1),
)
def test_chosen_experts_are_the_best_of_the_best_groups(
    groups: int, group_size: int, gate: GateKind, normalized: bool, data: st.DataObject, seed: int
) -> None:
    active_groups = data.draw(st.integers(1, groups))
    active = data.draw(st.integers(1, active_groups * group_size))
    experts = ExpertShape(
        experts=groups * group_size,
        active=active,
        width=1,
        gate=gate,
        groups=groups,
        active_groups=active_groups,
        normalized=normalized,
        scaling=1.5,
    )
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((3, experts.experts)).astype(np.float32)
    bias = rng.standard_normal(experts.experts).astype(np.float32)
    given_bias = bias if gate is GateKind.SIGMOID else None
    chosen, weights = choose_experts(xp, logits, given_bias, experts)
    for token in range(3):
        if gate is GateKind.SIGMOID:
            scores = 1 / (1 + np.exp(-logits[token]))
            choice = scores + bias
        else:
            scores = np.exp(logits[token]) / np.exp(logits[token]).sum()
            choice = scores
        counted = 2 if gate is GateKind.SIGMOID else 1
        grouped = np.sort(choice.reshape(groups, group_size), axis=-1)[:, ::-1][:, :counted]
        best_groups = np.argsort(-grouped.sum(axis=-1), kind="stable")[:active_groups]
        allowed = [e for e in range(experts.experts) if e // group_size in best_groups]
        expected = sorted(allowed, key=lambda e: -choice[e])[:active]
        assert chosen[token].tolist() == expected
        share = scores[expected] / (scores[expected].sum() if normalized else 1.0)
        assert weights[token] == pytest.approx(1.5 * share, rel=1e-4)
