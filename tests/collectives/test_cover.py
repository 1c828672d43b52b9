from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from tests.collectives.cover import Case, cover, parts_of

FACTORS = st.lists(st.integers(1, 4), min_size=2, max_size=4).map(
    lambda sizes: {f"factor {place}": list(range(size)) for place, size in enumerate(sizes)}
)


@given(FACTORS, st.sampled_from([1, 2]), st.integers(0, 9))
def test_every_choice_meets_every_other_at_least_once(
    factors: dict[str, list[int]], strength: int, seed: int
) -> None:
    cases = cover(factors, lambda _: True, strength=strength, seed=seed)
    covered = set().union(*(parts_of(case, strength) for case in cases))
    for names in combinations(factors, strength):
        for choices in product(*(factors[name] for name in names)):
            assert frozenset(zip(names, choices, strict=True)) in covered


def test_no_case_is_impossible_and_a_seed_gives_the_same() -> None:
    factors: dict[str, list[int]] = {"a": [1, 2, 3], "b": [1, 2, 3], "c": [0, 1]}

    def is_possible(case: Case) -> bool:
        return bool(case["a"] != case["b"] or case["c"])

    cases = cover(factors, is_possible, strength=2, seed=3)
    assert all(map(is_possible, cases))
    assert {(case["a"], case["b"]) for case in cases} == set(product([1, 2, 3], repeat=2))
    assert cases == cover(factors, is_possible, strength=2, seed=3)
