"""One suite for every algorithm and every call: the values of NumPy, whatever lies where.

Ranks begin at random times. This is a cover of all pairs of choices; ``test_product.py`` has all of
them.
"""

from typing import Any

import numpy as np
import pytest

from tests.collectives.calls import (
    CALLS,
    PLACEMENTS,
    STORAGE,
    Table,
    can_run,
    has_meaning,
    inputs_of,
)
from tests.collectives.cover import Case, cover
from tests.collectives.worlds import run_ranks
from tilewright.collectives.algorithm import checked_plan
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.operation import Call
from tilewright.language.dtype import dtype_of

MAX_SKEW_PS = 30_000_000
ROWS = {"no": 0, "one": 1, "odd": 7, "many": 4001}
COLUMNS = 5
SLOT_ELEMENTS, NUM_SLOTS = 16, 2  # of rings that many rows are more than, in every block
FACTORS: dict[str, list[Any]] = {
    "algorithm": ["auto", *sorted(ALGORITHMS)],
    "call": sorted(CALLS),
    "dtype": sorted(STORAGE),
    "reduction": ["sum", "prod", "min", "max", "avg", "bxor"],
    "ranks": [2, 3, 4, 5, 6, 7, 8, 11, 16],
    "rows": sorted(ROWS),
    "placement": [*PLACEMENTS, "mixed"],
    "rank_is_pe": [False, True],
    "slots": ["few", "as chosen"],
}


def is_possible(case: Case) -> bool:
    """Calls that reduce nothing go with one reduction."""
    operation, _ = CALLS[case["call"]]
    if not operation.combines and case["reduction"] != "sum":
        return False
    return can_run(case["algorithm"], case["call"]) and has_meaning(
        case["dtype"], case["reduction"]
    )


SUMS = {
    **FACTORS,
    "call": [name for name, (operation, _) in CALLS.items() if operation.combines],
    "dtype": ["f32"],
    "reduction": ["sum"],
    "rows": ["odd", "many"],
}
"""What most programs do, in more worlds and placements than its share of all pairs would be."""

CASES = [
    *cover(FACTORS, is_possible, strength=2, seed=6),
    *cover(SUMS, is_possible, strength=2, seed=7),
]


def ring_of(case: Case) -> dict[str, Any]:
    if case["slots"] != "few":
        return {}
    slot_bytes = max(1, SLOT_ELEMENTS * dtype_of(case["dtype"]).bits // 8)
    return {"n_slots": NUM_SLOTS, "slot_size": slot_bytes}


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_many_rows_are_more_than_few_slots_in_every_block(algorithm: str) -> None:
    num_pes, ranks = 4, max(FACTORS["ranks"])
    for operation in ALGORITHMS[algorithm].operations:
        if not Call(operation, ranks).is_uneven:
            plan = checked_plan(ALGORITHMS[algorithm], Call(operation, ranks), 0).plan
            block = ROWS["many"] * COLUMNS // num_pes // plan.num_blocks
            assert block > SLOT_ELEMENTS * NUM_SLOTS


def name_of(case: Case) -> str:
    return "-".join(str(value) for value in case.values())


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_every_call_gives_the_values_of_numpy(case: Case) -> None:
    ranks, dtype, reduction = case["ranks"], case["dtype"], case["reduction"]
    _, call = CALLS[case["call"]]
    draw = np.random.default_rng([ranks, ROWS[case["rows"]]])
    num_rows = ROWS[case["rows"]]
    if case["call"] not in ("all_reduce", "broadcast", "reduce", "exchange"):
        num_rows = -(-num_rows // ranks)
    inputs = inputs_of(draw, (num_rows, COLUMNS), ranks, dtype, reduction)
    ended = []

    def program(rank: int, torch: Any, dist: Any) -> None:
        table = Table(torch, dist, dtype, case["placement"], reduction, rank, ranks)
        found, expected = call(table, inputs)
        assert found.shape == expected.shape
        assert np.array_equal(found, expected)
        ended.append(rank)

    skews_ps = [int(draw.integers(MAX_SKEW_PS)) for _ in range(ranks)]
    run_ranks(
        ranks, program, rank_is_pe=case["rank_is_pe"], skews_ps=skews_ps,
        algorithm=case["algorithm"], **ring_of(case),
    )  # fmt: skip
    assert sorted(ended) == list(range(ranks))


@pytest.mark.parametrize("call", sorted(CALLS))
@pytest.mark.parametrize("placement", ["rows", "mixed"])
def test_every_call_runs_clean_under_the_sanitizer(call: str, placement: str) -> None:
    operation, function = CALLS[call]
    inputs = inputs_of(np.random.default_rng(1), (7, 5), 3, "f32", "sum")

    def program(rank: int, torch: Any, dist: Any) -> None:
        found, expected = function(Table(torch, dist, "f32", placement, "sum", rank, 3), inputs)
        assert np.array_equal(found, expected)

    able = next(each.name for each in ALGORITHMS.values() if operation in each.operations)
    torch = run_ranks(3, program, sanitize=True, algorithm=able)
    assert not len(torch.findings)


@pytest.mark.parametrize("queue_commands", [1, 2, 3, 7])
@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_ranks_never_wait_in_a_circle_however_few_commands_are_in_flight(
    algorithm: str, queue_commands: int
) -> None:
    """Chunks are longer than a ring, so that no send ends before its message is received."""
    ranks, num_rows = 4, ROWS["many"]
    calls = [
        call
        for operation, call in CALLS.values()
        if operation in ALGORITHMS[algorithm].operations and not Call(operation, ranks).is_uneven
    ]
    assert calls
    draw = np.random.default_rng(queue_commands)
    inputs = inputs_of(draw, (num_rows, COLUMNS), ranks, "f16", "avg")

    def program(rank: int, torch: Any, dist: Any) -> None:
        for call in calls:
            table = Table(torch, dist, "f16", "rows", "avg", rank, ranks)
            found, expected = call(table, inputs)
            assert np.array_equal(found, expected)

    run_ranks(
        ranks, program, fabric=(f"pe.queue_commands={queue_commands}",), algorithm=algorithm,
        n_slots=NUM_SLOTS, slot_size=2 * SLOT_ELEMENTS,
    )  # fmt: skip
