"""Cases in which every choice of some factors meets every choice of some others, at least once."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

Case = dict[str, Any]
Part = frozenset[tuple[str, Any]]

NUM_CANDIDATES = 12


def cover(
    factors: Mapping[str, Sequence[Any]],
    is_possible: Callable[[Case], bool],
    *,
    strength: int,
    seed: int,
    num_witnesses: int = 40,
) -> list[Case]:
    """Greedy, and the same for a seed. A part that no possible case was found for is left out."""
    draw = np.random.default_rng(seed)

    def complete(part: Case) -> Case | None:
        for _ in range(num_witnesses):
            case = {
                name: part.get(name, _one_of(draw, choices)) for name, choices in factors.items()
            }
            if is_possible(case):
                return case
        return None

    wanted = dict.fromkeys(
        frozenset(zip(names, choices, strict=True))
        for names in combinations(factors, strength)
        for choices in product(*(factors[name] for name in names))
    )
    cases = []
    while wanted:
        part = next(iter(wanted))
        found = [case for _ in range(NUM_CANDIDATES) if (case := complete(dict(part))) is not None]
        if not found:
            del wanted[part]
            continue
        best = max(found, key=lambda case: len(wanted.keys() & parts_of(case, strength)))
        for covered in parts_of(best, strength):
            wanted.pop(covered, None)
        cases.append(best)
    return cases


def parts_of(case: Case, strength: int) -> set[Part]:
    """All choices that a case brings together."""
    return {frozenset(chosen) for chosen in combinations(case.items(), strength)}


def _one_of(draw: np.random.Generator, choices: Sequence[Any]) -> Any:
    return choices[int(draw.integers(len(choices)))]
