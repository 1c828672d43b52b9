"""Budgets: by length, layer, head, policy, mass, threshold and cap."""

import math

import pytest

from tilewright.attention.planner import (
    Budget,
    Capped,
    DefaultBudget,
    Exactly,
    MassRule,
    PerHead,
    PerLayer,
    Policy,
    Reserved,
    RowBudget,
    RowFacts,
    ScoreRule,
    ThresholdBudget,
    TopPBudget,
    parse_policy,
)
from tilewright.errors import PlanError

RESERVED = Reserved(1, 1)


def bounds(budget: Budget, **facts: int) -> RowBudget:
    return budget.bounds(RowFacts(**{"num_blocks": 100, "num_tokens": 1600, **facts}), RESERVED)


def test_each_layer_and_head_can_have_its_own_budget() -> None:
    by_layer = PerLayer({2: DefaultBudget(topk=5)}, default=DefaultBudget(topk=9))
    assert [bounds(by_layer, layer=layer).at_most for layer in (1, 2)] == [11, 7]
    by_head = PerHead({0: by_layer}, default=DefaultBudget(topk=1))
    assert [bounds(by_head, head=head, layer=2).at_most for head in (0, 1)] == [7, 3]


def test_mass_and_threshold_leave_the_count_to_the_scores() -> None:
    assert bounds(TopPBudget(0.9, at_most=40)) == RowBudget(2, 40, MassRule(0.9))
    assert bounds(ThresholdBudget(-math.inf)) == RowBudget(2, 100, ScoreRule(-math.inf))


def test_a_cap_holds_counts_and_score_rules_alike() -> None:
    assert bounds(Capped(DefaultBudget(topk=50), at_most=20)) == RowBudget(20, 20, Exactly())
    assert bounds(Capped(DefaultBudget(topk=1), at_most=20, at_least=10)).at_most == 10
    assert bounds(Capped(TopPBudget(0.9), at_most=20, at_least=4)) == RowBudget(
        4, 20, MassRule(0.9)
    )


def test_a_policy_sees_all_facts_of_the_row() -> None:
    seen: dict[str, object] = {}

    def policy(**facts: object) -> int:
        seen.update(facts)
        return 8

    budget = Policy(policy, "mine", topk=4, ratio=0.25)
    assert bounds(budget, layer=3, head=2, step=7).at_most == 8
    assert seen == {
        "n_blocks": 100,
        "n_tokens": 1600,
        "layer": 3,
        "head": 2,
        "step": 7,
        "topk": 4,
        "ratio": 0.25,
        "bos": 1,
        "eos": 1,
    }


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("topk + bos + eos", 32),
        ("floor(sqrt(n_blocks)) + 2 if n_tokens > 1000 else n_blocks", 12),
        ("max(topk_val, int(cached_block_len * 0.5)) + block_reserved_eos", 51),
        ("n_blocks // 4 if layer < 2 and step != 1 else 3", 25),
    ],
)
def test_an_expression_is_arithmetic_over_the_facts(text: str, blocks: int) -> None:
    assert bounds(parse_policy(text)).at_most == blocks


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "(1).__class__",
        "lambda: 1",
        "[1][0]",
        "blocks",
        "max(n_blocks",
        "'a'",
        "return 3;",
        "round(n_blocks, ndigits=1)",
        "(x := 3)",
    ],
)
def test_anything_but_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="policy"):
        parse_policy(text)


@pytest.mark.parametrize("text", ["9 ** 9 ** 9", "(9 ** 64) ** 64", "2 ** n_tokens ** n_tokens"])
def test_a_power_without_an_end_is_refused_at_once(text: str) -> None:
    with pytest.raises(PlanError, match="a power of more than 4096 bits"):
        bounds(parse_policy(text))


@pytest.mark.parametrize("text", ["-" * 10_000 + "1", "1 << 10 ** 9", "1\0"], ids=len)
def test_an_expression_that_python_cannot_take_in_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="policy"):
        parse_policy(text)


def test_a_policy_that_fails_or_returns_no_int_is_an_error_and_never_the_default() -> None:
    with pytest.raises(PlanError, match="ZeroDivisionError"):
        bounds(parse_policy("1 // layer"))
    with pytest.raises(PlanError, match=r"found 50\.0, expected an int"):
        bounds(parse_policy("n_blocks / 2"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: DefaultBudget(topk=0),
        lambda: DefaultBudget(ratio=1.5),
        lambda: TopPBudget(0.0),
        lambda: TopPBudget(1.1),
        lambda: ThresholdBudget(math.nan),
        lambda: Capped(DefaultBudget(), at_most=2, at_least=3),
        lambda: Reserved(-1, 1),
        lambda: Reserved(1, 0),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(PlanError):
        make()
