import hashlib
from copy import deepcopy
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import ModelError
from tilewright.models.dense import DenseAttention
from tilewright.models.forward import logits_of, run_layers
from tilewright.models.recall import (
    NUM_KEYS,
    RECALL_SHAPE,
    KeySmear,
    RecallModel,
    RecallTask,
    draw_recall,
    load_recall,
)

SHA256 = "cf0de3808d68c89447c7f92eafcfb6d66a3515393e686ee7f894e76b8c9e5537"


@pytest.fixture(scope="module")
def model() -> RecallModel:
    return load_recall()


def share_right(model: RecallModel, task: RecallTask) -> float:
    attend = KeySmear(model.share).around(DenseAttention(RECALL_SHAPE))
    stream = run_layers(model.weights, task.tokens, range(len(task.tokens)), attend)
    found = np.asarray(logits_of(model.weights, stream[task.asked])).argmax(axis=-1)
    return float((found == task.answers).mean())


def test_the_weights_are_those_that_the_script_made() -> None:
    data = files("tilewright.models").joinpath("data/recall.safetensors").read_bytes()
    assert len(data) < 2**20
    assert hashlib.sha256(data).hexdigest() == SHA256


def mean_right(model: RecallModel, num_pairs: int) -> float:
    rng = np.random.default_rng([9, num_pairs])  # training drew from another seed
    tasks = [draw_recall(rng, num_pairs=num_pairs, num_asked=16) for _ in range(8)]
    return float(np.mean([share_right(model, task) for task in tasks]))


@pytest.mark.parametrize("num_pairs", [16, 32, 64, 128])
def test_dense_attention_recalls_nearly_every_value(model: RecallModel, num_pairs: int) -> None:
    assert mean_right(model, num_pairs) >= 0.98


def test_most_values_are_recalled_at_twice_the_length_of_training(model: RecallModel) -> None:
    assert mean_right(model, 256) >= 0.85


def test_without_the_pair_an_answer_is_a_guess(model: RecallModel) -> None:
    rng = np.random.default_rng(2)
    task = draw_recall(rng, num_pairs=64, num_asked=16)
    rest = np.concatenate([[0, NUM_KEYS], task.tokens[task.num_context :]])
    lost = RecallTask(rest, 2, task.asked - task.num_context + 2, task.answers)
    assert share_right(model, lost) <= 0.3


def test_a_smeared_sequence_may_be_cut_anywhere_and_go_on_twice(model: RecallModel) -> None:
    task = draw_recall(np.random.default_rng(4), num_pairs=20, num_asked=4)
    whole = KeySmear(model.share).around(DenseAttention(RECALL_SHAPE))
    expected = run_layers(model.weights, task.tokens, range(len(task.tokens)), whole)[11:]
    smear = KeySmear(model.share)
    dense = DenseAttention(RECALL_SHAPE)
    run_layers(model.weights, task.tokens[:11], range(11), smear.around(dense))
    for attend in (smear.copy().around(deepcopy(dense)), smear.around(dense)):
        found = run_layers(model.weights, task.tokens[11:], range(11, len(task.tokens)), attend)
        assert np.asarray(found) == pytest.approx(np.asarray(expected), abs=1e-4)


@given(st.integers(1, NUM_KEYS), st.data(), st.integers(0, 2**32 - 1))
def test_every_asked_key_stands_once_in_the_context_with_its_answer_behind(
    num_pairs: int, data: st.DataObject, seed: int
) -> None:
    num_asked = data.draw(st.integers(1, num_pairs))
    task = draw_recall(np.random.default_rng(seed), num_pairs=num_pairs, num_asked=num_asked)
    context = task.tokens[: task.num_context]
    for position, answer in zip(task.asked, task.answers, strict=True):
        (place,) = np.nonzero(context == task.tokens[position])[0]
        assert context[place + 1] == answer == task.tokens[position + 1]


@pytest.mark.parametrize(("num_pairs", "num_asked"), [(4, 5), (4, 0), (NUM_KEYS + 1, 1)])
def test_a_task_that_cannot_be_drawn_is_refused(num_pairs: int, num_asked: int) -> None:
    with pytest.raises(ModelError, match=f"{num_asked} of {num_pairs} pairs"):
        draw_recall(np.random.default_rng(0), num_pairs=num_pairs, num_asked=num_asked)
