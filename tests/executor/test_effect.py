from typing import Any

import numpy as np
import pytest

from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.errors import KernelError
from tilewright.executor.address import Piece
from tilewright.executor.effect import Capture, Commit, EffectLog
from tilewright.executor.layout import layout_of
from tilewright.language.affine import Affine, Box
from tilewright.language.dtype import int16
from tilewright.language.front import Node, constant_node, not_captured
from tilewright.memory.store import ByteStore


class Told:
    """An effect that writes down when it is applied."""

    def __init__(self, log: list[str], name: str) -> None:
        self._log = log
        self._name = name

    def apply(self) -> None:
        self._log.append(self._name)


def test_an_effect_happens_when_its_last_part_has_been_served() -> None:
    log: list[str] = []
    effects = EffectLog()
    one = effects.add(Told(log, "one"), 1)
    two = effects.add(Told(log, "two"), 2)
    effects.apply([(10, two), (20, one)])
    assert log == ["one"]
    effects.apply([(30, two)])
    assert log == ["one", "two"]


def test_a_failing_effect_names_its_owner_and_its_time() -> None:
    class Failing:
        def apply(self) -> None:
            raise KernelError("line 7", "nothing", "something", "look")

    effects = EffectLog()
    number = effects.add(Failing(), 1, "program (3,) of k")
    with pytest.raises(KernelError, match=r"program \(3,\) of k, at 500 ps, line 7: found"):
        effects.apply([(500, number)])


def box_of(shape: tuple[int, ...]) -> Box:
    return Box((1, 0), (3, 2), shape)


def test_a_capture_reads_all_at_once_and_fills_the_rest() -> None:
    store = ByteStore("memory", 4096)
    store.write(0, np.arange(64, dtype=np.int16).tobytes())
    layout = layout_of(Affine(0, (16, 2), (4, 3)), box_of((4, 3)), 2)
    pieces = [Piece(0, 16, 0, 2, 0, 4, 16, 0)]
    node = Node(not_captured, (), None)
    Capture(node, [store], pieces, layout, int16, -1).apply()
    expected = np.full((4, 3), -1)
    expected[1:3, :2] = [[8, 9], [16, 17]]
    np.testing.assert_array_equal(node.value, expected)
    store.write(0, bytes(128))
    np.testing.assert_array_equal(node.value, expected)  # a snapshot


def test_a_commit_writes_the_places_inside_the_box() -> None:
    store = ByteStore("memory", 4096)
    layout = layout_of(Affine(0, (16, 2), (4, 3)), box_of((4, 3)), 2)
    value = constant_node(np.array(7, np.int16))  # broadcast
    Commit(value, [store], [Piece(0, 16, 0, 2, 0, 4, 16, 0)], layout).apply()
    found = np.frombuffer(store.read(0, 64).tobytes(), np.int16).reshape(4, 8)
    expected = np.zeros((4, 8))
    expected[1:3, :2] = 7
    np.testing.assert_array_equal(found, expected)


def test_what_was_loaded_stays_what_it_was_when_memory_changes() -> None:
    def kernel(x_ptr: Any, out_ptr: Any) -> None:
        n = tl.arange(0, 64)
        x = tl.load(x_ptr + n)
        tl.store(x_ptr + n, x * 0 - 1)
        tl.store(out_ptr + n, x + tl.load(x_ptr + n))

    bed = Bed()
    values = np.arange(64, dtype=np.float32)
    x, out = bed.place(values), bed.place(np.zeros_like(values))
    bed.launch(kernel, x, out)
    np.testing.assert_array_equal(bed.read(out), values - 1)
