"""Transposed blocks: free where a product reads them, a copy for the first one else that asks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kinds import every_engine
from tests.language.bed import Array, Bed
from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.runtime.workspace import LaunchResult

SIDE = 64
BATCH = 2
COPY_PS = SIDE * SIDE * 4 * 10**6 // (512 * 10**3)  # bytes / TCM port rate
FEW_REGISTERS = f"pe.registers.capacity_bytes={3 * SIDE * SIDE * 4}"

Body = Callable[[Any, Any], Any]


def places(*extents: int) -> Any:
    """Of a block that lies row by row."""
    found: Any = 0
    for axis, extent in enumerate(extents):
        index = tl.arange(0, extent)
        for other in range(len(extents)):
            if other != axis:
                index = tl.expand_dims(index, other)
        found = found * extent + index
    return found


def run(
    kind: EngineKind, body: Body, *overrides: str, batch: int = 0, carries_data: bool = True
) -> tuple[LaunchResult, Array]:
    """A kernel that stores what ``body`` makes of two blocks, of which b is there last."""
    shape = (batch, SIDE, SIDE) if batch else (SIDE, SIDE)

    def kernel(a_ptr: Any, b_ptr: Any, out_ptr: Any) -> None:
        here = places(*shape)
        a, b = tl.load(a_ptr + here), tl.load(b_ptr + here)
        for number, result in enumerate(body(a, b)):
            tl.store(out_ptr + here + number * a.numel, result)

    bed = Bed(*overrides, engine=kind)
    given = [np.random.default_rng(seed).integers(-4, 5, shape) for seed in (1, 2)]
    a, b = (bed.place(each.astype(np.float32)) for each in given)
    out = bed.place(np.zeros((4, *shape), np.float32))
    result = bed.launch(kernel, a, b, out, carries_data=carries_data)
    return result, bed.read(out)


def plain(a: Any, b: Any) -> Any:
    return (tl.dot(a, b),)


IN_PLACE: dict[str, tuple[Body, Callable[[Array, Array], Array]]] = {
    "left": (lambda a, b: (tl.dot(tl.trans(a), b),), lambda a, b: a.T @ b),
    "right": (lambda a, b: (tl.dot(a, tl.trans(b)),), lambda a, b: a @ b.T),
    "attribute": (lambda a, b: (tl.dot(a.T, b),), lambda a, b: a.T @ b),
    "method": (lambda a, b: (tl.dot(a, b.trans()),), lambda a, b: a @ b.T),
    "permute": (lambda a, b: (tl.dot(a, tl.permute(b, (1, 0))),), lambda a, b: a @ b.T),
    "both": (lambda a, b: (tl.dot(a.T, b.T),), lambda a, b: a.T @ b.T),
}


def operands() -> tuple[Array, ...]:
    return tuple(np.random.default_rng(seed).integers(-4, 5, (SIDE, SIDE)) for seed in (1, 2))


@every_engine
@pytest.mark.parametrize("carries_data", [True, False])
@pytest.mark.parametrize("name", IN_PLACE)
def test_a_product_reads_a_transposed_operand_in_place(
    kind: EngineKind, name: str, carries_data: bool
) -> None:
    body, expected = IN_PLACE[name]
    usual, _ = run(kind, plain, carries_data=carries_data)
    found, values = run(kind, body, carries_data=carries_data)
    assert found.latency_ps == usual.latency_ps
    assert found.counters.commands == usual.counters.commands
    if carries_data:
        np.testing.assert_array_equal(values[0], expected(*operands()))


@every_engine
def test_a_transposed_operand_in_place_needs_no_space_of_its_own(kind: EngineKind) -> None:
    usual, _ = run(kind, plain, FEW_REGISTERS)
    found, _ = run(kind, lambda a, b: (tl.dot(a.T, b.T),), FEW_REGISTERS)
    assert found.counters.spilled_bytes == usual.counters.spilled_bytes == 0


@every_engine
def test_products_of_many_read_matrices_with_their_axes_swapped_in_place(kind: EngineKind) -> None:
    usual, _ = run(kind, plain, batch=BATCH)
    found, values = run(kind, lambda a, b: (tl.dot(tl.permute(a, (0, 2, 1)), b),), batch=BATCH)
    assert found.latency_ps == usual.latency_ps
    assert found.counters.commands == usual.counters.commands
    moved, _ = run(
        kind,
        lambda a, b: (tl.dot(tl.permute(a, (1, 0, 2)).reshape(a.shape), b),),
        batch=BATCH,
    )
    assert moved.counters.commands == usual.counters.commands + 1
    given = [np.random.default_rng(seed).integers(-4, 5, (BATCH, SIDE, SIDE)) for seed in (1, 2)]
    np.testing.assert_array_equal(values[0], np.matrix_transpose(given[0]) @ given[1])


def stored(a: Any, _: Any) -> Any:
    return (tl.trans(a),)


def passed_on(a: Any, _: Any) -> Any:
    return (a,)


@every_engine
def test_whoever_else_needs_a_transposed_block_pays_for_its_copy(kind: EngineKind) -> None:
    usual, _ = run(kind, passed_on)
    found, values = run(kind, stored)
    assert found.counters.commands == usual.counters.commands + 1
    assert found.latency_ps >= usual.latency_ps + COPY_PS
    np.testing.assert_array_equal(values[0], operands()[0].T)


OTHERS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda x: x + 1,
    "two of them": lambda x: x + x,
    "a view": lambda x: x.reshape(SIDE, SIDE, 1).reshape(SIDE, SIDE),
    "a reduction": lambda x: x - tl.sum(x, 1, keep_dims=True),
    "an accumulator": lambda x: tl.dot(x, x, x),
    "a cast": lambda x: tl.dot(x.to(tl.float16), x.to(tl.float16)),
}


@every_engine
@pytest.mark.parametrize("name", OTHERS)
def test_a_transposed_block_is_copied_once_for_all_others(kind: EngineKind, name: str) -> None:
    use = OTHERS[name]

    def transposed(a: Any, b: Any) -> Any:
        x = tl.trans(a)
        return (use(x), tl.dot(x, b), use(x), x)

    def as_it_is(a: Any, b: Any) -> Any:
        return (use(a), tl.dot(a, b), use(a), a)

    found, values = run(kind, transposed)
    usual, _ = run(kind, as_it_is)
    assert found.counters.commands == usual.counters.commands + 1
    a, b = operands()
    np.testing.assert_array_equal(values[1], a.T @ b)
    np.testing.assert_array_equal(values[3], a.T)


@every_engine
def test_the_copy_is_made_when_another_needs_it_and_not_before(kind: EngineKind) -> None:
    """A product before that has read the block in place; one behind it reads the copy."""

    def late(a: Any, b: Any) -> Any:
        x = tl.trans(b)
        product = tl.dot(a, x)
        x + 0.0
        return (product,)

    def early(a: Any, b: Any) -> Any:
        x = tl.trans(b)
        x + 0.0
        return (tl.dot(a, x),)

    usual, _ = run(kind, plain)
    found, _ = run(kind, late)
    before, _ = run(kind, early)
    assert found.counters.commands == before.counters.commands == usual.counters.commands + 2
    assert found.latency_ps < usual.latency_ps + COPY_PS <= before.latency_ps


@every_engine
def test_python_waits_for_the_copy_it_looks_at(kind: EngineKind) -> None:
    seen: list[str] = []

    def looking(a: Any, b: Any) -> Any:
        x = tl.trans(a)
        seen.append(str(x))
        return (tl.dot(x, b),)

    usual, _ = run(kind, plain)
    found, _ = run(kind, looking)
    assert seen == [str(operands()[0].T.astype(np.float32))]
    assert found.counters.commands == usual.counters.commands + 1


@every_engine
def test_a_block_of_nothing_but_a_number_is_transposed_like_others(kind: EngineKind) -> None:
    full = run(kind, lambda _, b: (tl.dot(tl.full((SIDE, SIDE), 2.0, tl.float32), b),))
    transposed = run(kind, lambda _, b: (tl.dot(tl.full((SIDE, SIDE), 2.0, tl.float32).T, b),))
    assert transposed[0].latency_ps == full[0].latency_ps
    kept, values = run(kind, lambda *_: (tl.full((SIDE, SIDE), 2.0, tl.float32).T,))
    assert kept.counters.commands == full[0].counters.commands
    assert (values[0] == 2).all()


@every_engine
def test_an_atomic_takes_a_transposed_block_in_its_order(kind: EngineKind) -> None:
    def kernel(a_ptr: Any, out_ptr: Any, transposes: Any) -> None:
        here = places(8, 8)
        a = tl.load(a_ptr + here)
        tl.atomic_add(out_ptr + here, tl.trans(a) if transposes else a)

    counts = []
    for transposes in (False, True):
        bed = Bed(engine=kind)
        a = bed.place(np.arange(64, dtype=np.float32).reshape(8, 8))
        out = bed.place(np.zeros((8, 8), np.float32))
        result = bed.launch(kernel, a, out, transposes)
        counts.append((result.counters.commands, result.latency_ps))
        expected = bed.read(a).T if transposes else bed.read(a)
        np.testing.assert_array_equal(bed.read(out), expected)
    assert counts[1][0] == counts[0][0] + 1
    assert counts[1][1] > counts[0][1]


@every_engine
def test_a_composite_product_reads_transposed_blocks_in_place(kind: EngineKind) -> None:
    def product(a: Any, b: Any) -> Any:
        return (tl.wait(tl.composite("gemm", a, b, tile_shape=(32, 32, 32))),)

    usual, _ = run(kind, product)
    found, values = run(kind, lambda a, b: product(a.T, b.T))
    assert found.latency_ps == usual.latency_ps
    a, b = operands()
    np.testing.assert_array_equal(values[0], a.T @ b.T)


@every_engine
def test_a_composite_of_the_vector_unit_needs_the_copy(kind: EngineKind) -> None:
    def total(a: Any, b: Any) -> Any:
        return (tl.wait(tl.composite("add", a, b)),)

    usual, _ = run(kind, total)
    found, values = run(kind, lambda a, b: total(a.T, b))
    assert found.counters.commands == usual.counters.commands + 1
    a, b = operands()
    np.testing.assert_array_equal(values[0], a.T + b)
