import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.collectives.algorithm import Algorithm, build_table, checked_plan
from tilewright.collectives.algorithms import ALGORITHMS, find_algorithm
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan, Script
from tilewright.errors import CollectiveError, RegistryError

PAIRS = [(each, operation) for each in ALGORITHMS.values() for operation in each.operations]


@given(st.sampled_from(PAIRS), st.integers(2, 12), st.integers(0, 31), st.data())
def test_every_algorithm_has_a_proved_plan_for_all_worlds_and_lanes(
    pair: tuple[Algorithm, Operation], ranks: int, lane: int, data: st.DataObject
) -> None:
    algorithm, operation = pair
    root = data.draw(st.integers(0, ranks - 1)) if operation.has_root else 0
    plan = checked_plan(algorithm, Call(operation, ranks, root), lane).plan
    assert plan.num_ranks == ranks
    assert plan.num_turns > 0


def test_two_algorithms_of_one_name_are_refused() -> None:
    ring = ALGORITHMS["ring"]
    with pytest.raises(RegistryError, match="two algorithms 'ring'"):
        build_table([ring, ring])


def test_an_algorithm_that_cannot_carry_out_an_operation_is_refused_with_those_that_can() -> None:
    with pytest.raises(CollectiveError, match="direct"):
        find_algorithm("ring", Operation.ALL_TO_ALL)


def test_a_plan_of_a_user_that_leaves_a_rank_out_is_refused() -> None:
    def plan_half(call: Call, lane: int) -> Plan:
        del lane
        script = Script(call.num_ranks, call.num_ranks)
        script.move(0, 0, 1, range(call.num_ranks), combines=True)
        return script.plan()

    wrong = Algorithm("half", frozenset((Operation.ALL_REDUCE,)), plan_half)
    with pytest.raises(CollectiveError, match="block 0 of rank 0 with the values of ranks 0"):
        checked_plan(wrong, Call(Operation.ALL_REDUCE, 2), 0)
