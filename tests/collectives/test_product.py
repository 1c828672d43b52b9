"""Every algorithm with every call, dtype, number of ranks, size and placement: the whole product.

``HYPOTHESIS_PROFILE=all``, as `make test-all` sets it, runs all of it, for hours; ``-k`` picks a
part by words of its names. Continuous integration runs a few of its tests, to see that they work.
A test has all dtypes and sizes of the other choices, one after the other in one context: rings that
stay meet others, and plans and predictions are made once.
"""

import os
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.collectives.calls import (
    CALLS,
    PLACEMENTS,
    REDUCTIONS,
    STORAGE,
    Table,
    can_run,
    has_meaning,
    inputs_of,
)
from tests.collectives.worlds import join_world, run_ranks
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.language.dtype import dtype_of

IS_WHOLE = os.environ.get("HYPOTHESIS_PROFILE") == "all"
SIZES = (0, 1, 7, 1315)  # elements; the last: more than all slots of a ring, in every block
COLUMNS = 5
SLOT_ELEMENTS = 4
NUM_SLOTS = 2
WORLDS = range(2, 17)
MAX_SKEW_PS = 30_000_000
PLACES = [*((name, False) for name in (*PLACEMENTS, "mixed")), ("rows", True), ("mixed", True)]
"""Placements on SIPs, and on ranks that are one PE each."""

PAIRS = [
    (algorithm, call)
    for algorithm, call in product(("auto", *ALGORITHMS), CALLS)
    if can_run(algorithm, call)
]
PRODUCT = list(product(PAIRS, WORLDS, PLACES))
CHOSEN = PRODUCT if IS_WHOLE else [case for case in PRODUCT[::613] if case[1] <= 6]
DTYPES = sorted(STORAGE) if IS_WHOLE else ["bf16"]


def name_of(case: tuple[tuple[str, str], int, tuple[str, bool]]) -> str:
    (algorithm, call), ranks, (placement, is_pe) = case
    where = "PEs" if is_pe else "SIPs"
    return f"{algorithm}-{call}-{ranks}_{where}-{placement.replace(' ', '_')}"  # words for -k


def reduction_of(dtype: str, number: int) -> str:
    """In turn, of those that the dtype has."""
    able = [each for each in REDUCTIONS if has_meaning(dtype, each)]
    return able[number % len(able)]


def shape_of(call: str, num_elements: int, ranks: int) -> tuple[int, ...]:
    """Of what a rank brings; parts for all ranks are that much together."""
    is_whole = call in ("all_reduce", "broadcast", "reduce", "exchange")
    rows = -(-num_elements // COLUMNS)
    return (rows if is_whole else -(-rows // ranks), COLUMNS if num_elements > 1 else 1)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", CHOSEN, ids=name_of)
def test_values_are_those_of_numpy(case: tuple[tuple[str, str], int, tuple[str, bool]]) -> None:
    (algorithm, name), ranks, (placement, is_pe) = case
    operation, call = CALLS[name]
    num_checked = [0] * ranks

    def check(rank: int, torch: Any, dist: Any, dtype: str, number: int) -> None:
        reduction = reduction_of(dtype, number + ranks) if operation.combines else "sum"
        draw = np.random.default_rng([ranks, SIZES[number]])
        inputs = inputs_of(draw, shape_of(name, SIZES[number], ranks), ranks, dtype, reduction)
        table = Table(torch, dist, dtype, placement, reduction, rank, ranks)
        found, expected = call(table, inputs)
        what = f"{reduction} of {SIZES[number]} elements of {dtype}"
        assert found.shape == expected.shape, what
        assert np.array_equal(found, expected), what
        num_checked[rank] += 1

    def program(rank: int, torch: Any, dist: Any) -> None:
        for dtype in DTYPES:
            slot_bytes = max(1, SLOT_ELEMENTS * dtype_of(dtype).bits // 8)
            join_world(torch, ranks, rank_is_pe=is_pe, slot_size=slot_bytes, **options)
            for number in range(len(SIZES)):
                check(rank, torch, dist, dtype, number)

    options: dict[str, Any] = {"algorithm": algorithm, "n_slots": NUM_SLOTS}
    draw = np.random.default_rng([ranks, len(name)])
    skews_ps = [int(draw.integers(MAX_SKEW_PS)) for _ in range(ranks)]
    run_ranks(ranks, program, rank_is_pe=is_pe, skews_ps=skews_ps, **options)
    assert num_checked == [len(SIZES) * len(DTYPES)] * ranks


def test_the_product_has_every_choice_that_can_run() -> None:
    algorithms = {algorithm for (algorithm, _), _, _ in PRODUCT}
    calls = {call for (_, call), _, _ in PRODUCT}
    assert (algorithms, calls) == ({"auto", *ALGORITHMS}, set(CALLS))
    assert len(PRODUCT) == len(set(PRODUCT)) == len(PAIRS) * 15 * 8


@pytest.mark.parametrize("ranks", [2, 16])
def test_the_largest_size_is_more_than_a_ring_in_every_block(ranks: int) -> None:
    num_pes, most_blocks = 4, 2 * ranks
    block = SIZES[-1] // num_pes // most_blocks
    assert block > NUM_SLOTS * SLOT_ELEMENTS
