"""State of flows belongs to one request and starts at its initial value."""

import numpy as np
import pytest

from tilewright.attention.paging import StateField, StateStore
from tilewright.errors import PagingError


def store() -> StateStore:
    fields = (StateField("score", (1, 1), initial=2.0),)
    return StateStore(fields, namespace=np, dtype=np.dtype(np.float32), num_kv_heads=2)


def test_blocks_that_were_never_saved_read_the_initial_value() -> None:
    state = store()
    assert np.all(state.read("a", 0, "score", 3) == 2.0)
    state.write("a", 0, "score", np.zeros((2, 3, 1, 1), np.float32))
    grown = state.read("a", 0, "score", 5)
    assert np.all(grown[:, :3] == 0.0)
    assert np.all(grown[:, 3:] == 2.0)


def test_requests_and_layers_do_not_see_each_other() -> None:
    state = store()
    state.write("a", 0, "score", np.zeros((2, 3, 1, 1), np.float32))
    assert np.all(state.read("b", 0, "score", 3) == 2.0)
    assert np.all(state.read("a", 1, "score", 3) == 2.0)


def test_a_forked_request_starts_with_a_copy_of_its_own() -> None:
    state = store()
    state.write("a", 0, "score", np.zeros((2, 3, 1, 1), np.float32))
    state.copy_request("a", "b")
    state.write("b", 0, "score", np.ones((2, 3, 1, 1), np.float32))
    assert np.all(state.read("a", 0, "score", 3) == 0.0)


def test_a_cut_block_comes_back_at_the_initial_value() -> None:
    state = store()
    state.write("a", 0, "score", np.zeros((2, 3, 1, 1), np.float32))
    state.truncate("a", 1)
    assert np.all(state.read("a", 0, "score", 3)[:, 1:] == 2.0)


def test_a_request_takes_its_state_along_and_brings_it_back() -> None:
    state = store()
    state.write("a", 0, "score", np.zeros((2, 3, 1, 1), np.float32))
    assert state.num_bytes == 2 * 3 * 4
    taken = state.take_request("a")
    assert state.num_bytes == 0
    assert np.all(state.read("a", 0, "score", 3) == 2.0)
    state.put_request("a", taken)
    assert np.all(state.read("a", 0, "score", 3) == 0.0)


def test_restoring_a_snapshot_undoes_later_writes() -> None:
    state = store()
    kept = state.snapshot()
    state.write("a", 0, "score", np.zeros((2, 3, 1, 1), np.float32))
    state.restore(kept)
    assert np.all(state.read("a", 0, "score", 3) == 2.0)


def test_values_of_another_shape_are_refused() -> None:
    with pytest.raises(PagingError, match=r"state 'score': found shape \(2, 3, 1, 2\)"):
        store().write("a", 0, "score", np.zeros((2, 3, 1, 2), np.float32))
