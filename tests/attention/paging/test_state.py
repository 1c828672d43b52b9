"""State of flows belongs to one request and starts where it is told to."""

import numpy as np
import numpy.typing as npt
import pytest

from tilewright.attention.paging import StateField, StateStore
from tilewright.errors import PagingError

START = np.full((2, 5, 1, 1), 2.0, np.float32)


def store() -> StateStore:
    fields = (StateField("score", (1, 1), np.dtype(np.float32)),)
    return StateStore(fields, namespace=np)


def values(number: float, blocks: int = 3) -> dict[str, npt.NDArray[np.float32]]:
    return {"score": np.full((2, blocks, 1, 1), number, np.float32)}


def test_blocks_that_were_never_written_have_their_start() -> None:
    state = store()
    assert np.all(state.read("a", 0, "score", START) == 2.0)
    state.write("a", 0, values(0.0))
    grown = state.read("a", 0, "score", START)
    assert np.all(grown[:, :3] == 0.0)
    assert np.all(grown[:, 3:] == 2.0)


def test_requests_and_layers_do_not_see_each_other() -> None:
    state = store()
    state.write("a", 0, values(0.0))
    assert np.all(state.read("b", 0, "score", START) == 2.0)
    assert np.all(state.read("a", 1, "score", START) == 2.0)


def test_a_forked_request_goes_its_own_way() -> None:
    state = store()
    state.write("a", 0, values(0.0))
    state.copy_request("a", "b")
    state.write("b", 0, values(1.0))
    assert np.all(state.read("a", 0, "score", START[:, :3]) == 0.0)


def test_a_cut_block_comes_back_at_its_start() -> None:
    state = store()
    state.write("a", 0, values(0.0))
    state.truncate("a", 1)
    assert np.all(state.read("a", 0, "score", START)[:, 1:] == 2.0)


def test_a_request_takes_its_state_along_and_brings_it_back() -> None:
    state = store()
    state.write("a", 0, values(0.0))
    assert state.num_bytes == 2 * 3 * 4
    taken = state.take_request("a")
    assert state.num_bytes == 0
    assert np.all(state.read("a", 0, "score", START) == 2.0)
    state.put_request("a", taken)
    assert np.all(state.read("a", 0, "score", START[:, :3]) == 0.0)


def test_restoring_a_snapshot_undoes_later_writes() -> None:
    state = store()
    kept = state.snapshot()
    state.write("a", 0, values(0.0))
    state.restore(kept)
    assert np.all(state.read("a", 0, "score", START) == 2.0)


def test_values_of_another_shape_are_refused() -> None:
    with pytest.raises(PagingError, match=r"state 'score': found inner shape \(1, 2\)"):
        store().write("a", 0, {"score": np.zeros((2, 3, 1, 2), np.float32)})
