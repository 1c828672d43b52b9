from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tilewright.engine import Engine, ServerSpec, TaskGraph
from tilewright.errors import EngineError
from tilewright.units import MAX_PS


def send(graph: TaskGraph, **columns: object) -> range:
    fields: dict[str, object] = {"num_bytes": [64], "delays_ps": [0], "effects": [0], **columns}
    return graph.transfers([0], **fields)  # type: ignore[arg-type]


WRONG_COLUMNS: dict[str, tuple[object, str]] = {
    "beyond int64": (
        np.array([2**64 - 1], np.uint64),
        f"num_bytes of up to {2**64 - 1}, expected integers of at most {MAX_PS}; correct num_bytes",
    ),
    "just beyond int64": (
        [2**63],
        f"num_bytes of up to {2**63}, expected integers of at most {MAX_PS}; correct num_bytes",
    ),
    "beyond uint64": (
        [2**64],
        f"num_bytes of type object, expected integers of at most {MAX_PS}; convert num_bytes",
    ),
    "ragged": ([[1], [2, 3]], "a ragged num_bytes, expected a column of integers; flatten it"),
    "none": (
        None,
        ("num_bytes of shape (), expected a column of integers; pass a list or array of num_bytes"),
    ),
    "long": (
        [64, 64],
        "columns of lengths 1, 2, 1, 1, expected four columns of one length; align them",
    ),
}


@pytest.mark.parametrize("case", WRONG_COLUMNS)
def test_a_wrong_column_is_refused_and_leaves_nothing_behind(case: str) -> None:
    column, message = WRONG_COLUMNS[case]
    graph = TaskGraph()
    with pytest.raises(EngineError) as caught:
        send(graph, num_bytes=column)
    assert str(caught.value) == f"task graph, task 0: found {message}"
    assert len(graph) == 0


def test_unsigned_columns_that_fit_are_taken(engine: Engine) -> None:
    engine.add_server(ServerSpec("link", bytes_per_us=64_000))
    engine.add_route(["link"])
    graph = TaskGraph()
    assert send(graph, num_bytes=np.array([64], np.uint64)) == range(1)
    engine.submit(graph)
    engine.run()
    assert engine.now_ps == 1000


ADDERS: dict[str, Callable[..., int]] = {
    "transfer": lambda graph, **lists: graph.transfer(0, num_bytes=1, **lists),
    "hold": lambda graph, **lists: graph.hold(0, hold_ps=1, **lists),
    "timer": lambda graph, **lists: graph.timer(1, **lists),
}


@pytest.mark.parametrize("adder", ADDERS)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("after", "after = 3, expected a list of earlier tasks; pass (task,)"),
        (
            "waits",
            "waits = 3, expected a list of pairs (signal, threshold); pass ((signal, threshold),)",
        ),
        (
            "raises",
            "raises = 3, expected a list of pairs (signal, amount); pass ((signal, amount),)",
        ),
    ],
)
def test_a_number_in_place_of_a_list_is_refused(adder: str, name: str, message: str) -> None:
    graph = TaskGraph()
    with pytest.raises(EngineError) as caught:
        ADDERS[adder](graph, **{name: 3})
    assert str(caught.value) == f"task graph, task 0: found {message}"
    assert len(graph) == 0


def test_an_error_of_the_callers_own_iterator_stays_what_it_is() -> None:
    def broken() -> Iterator[int]:
        yield 0
        raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$"):
        TaskGraph().timer(after=broken())


SCALAR = np.int64(5)
WRONG_ROWS: dict[str, tuple[Callable[[TaskGraph], object], str]] = {
    "a scalar": (
        lambda graph: graph.hold(0, hold_ps=SCALAR),  # type: ignore[arg-type]
        (
            f"hold_ps = {SCALAR!r}, expected an int in 1..{MAX_PS} (no bool, no NumPy scalar); "
            "pass int(value)"
        ),
    ),
    "a large number": (
        lambda graph: graph.hold(0, hold_ps=2**63),
        f"hold_ps = {2**63}, expected an int in 1..{MAX_PS}; correct hold_ps",
    ),
    "the least int64 as tag": (
        lambda graph: graph.hold(0, hold_ps=1, tag=-(2**63)),
        f"tag = {-(2**63)}, expected an int in {-MAX_PS}..{MAX_PS}; correct tag",
    ),
    "after a scalar": (
        lambda graph: graph.timer(after=(SCALAR,)),  # type: ignore[arg-type]
        (
            f"after = {SCALAR!r}, expected an earlier task of the graph, an int below 1; "
            "pass int(value)"
        ),
    ),
    "a pair with a scalar": (
        lambda graph: graph.timer(waits=((0, SCALAR),)),  # type: ignore[arg-type]
        (
            f"(0, {SCALAR!r}) in waits or raises, expected a tuple (signal, value) of ints, "
            f"the value in 1..{MAX_PS}; pass int(value)"
        ),
    ),
    "a pair in place of a list of pairs": (
        lambda graph: graph.timer(raises=(0, 1)),  # type: ignore[arg-type]
        (
            "0 in waits or raises, expected a tuple (signal, value) of ints, "
            f"the value in 1..{MAX_PS}; correct the task"
        ),
    ),
}


@pytest.mark.parametrize("case", WRONG_ROWS)
def test_a_wrong_task_is_refused_in_the_same_words(engine: Engine, case: str) -> None:
    engine.add_server(ServerSpec("unit"))
    engine.add_route(["unit"])
    engine.add_signal("go")
    add, message = WRONG_ROWS[case]
    graph = TaskGraph()
    graph.timer()
    add(graph)
    with pytest.raises(EngineError) as caught:
        engine.submit(graph)
    assert str(caught.value) == f"task graph, task 1: found {message}"


def test_the_least_tag_is_taken(engine: Engine) -> None:
    engine.add_server(ServerSpec("unit"))
    graph = TaskGraph()
    graph.hold(engine.add_route(["unit"]), hold_ps=7, tag=-MAX_PS)
    engine.submit(graph)
    engine.run()
    assert engine.now_ps == 7


def test_a_graph_shows_its_size_and_whether_it_is_frozen(engine: Engine) -> None:
    graph = TaskGraph()
    graph.timer()
    assert repr(graph) == "<TaskGraph of 1 tasks, being built>"
    engine.submit(graph)
    assert repr(graph) == "<TaskGraph of 1 tasks, frozen>"
