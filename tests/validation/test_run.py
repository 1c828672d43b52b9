"""The table of oracles, its run, and the page that shows it."""

import re
from fractions import Fraction

import pytest

from tilewright.engine import EngineKind
from tilewright.errors import RegistryError
from tilewright.validation.finding import Finding, Oracle, OracleGroup, Rule, at_most, exact
from tilewright.validation.page import validation_page
from tilewright.validation.run import ORACLES, build_table, run_oracles

LAWS = {
    "QU": 6,
    "NO": 10,
    "HB": 10,
    "ME": 3,
    "LI": 6,
    "GE": 5,
    "RO": 6,
    "CO": 9,
    "LB": 5,
    "IN": 10,
    "VX": 10,
    "PH": 4,
    "BO": 4,
    "AV": 4,
}


def right(_kind: EngineKind) -> Finding:
    return exact(7, 7, "ps")


def wrong(_kind: EngineKind) -> Finding:
    return at_most(Fraction(1, 3), 2, "busy")


SOME = (
    Oracle("XX1 holds", OracleGroup.QUEUES, right),
    Oracle("XX2 is broken", OracleGroup.HBM, wrong),
)


def ignore(_message: str) -> None:
    """Progress that nobody reads."""


@pytest.mark.parametrize(("prefix", "last"), LAWS.items())
def test_every_law_has_an_oracle(prefix: str, last: int) -> None:
    numbers = {
        int(number) for oracle in ORACLES for number in re.findall(rf"\b{prefix}(\d+)", oracle.name)
    }
    assert numbers == set(range(1, last + 1))


def test_every_group_has_oracles_and_they_stand_together() -> None:
    groups = [oracle.group for oracle in ORACLES]
    assert list(dict.fromkeys(groups)) == list(OracleGroup)
    assert groups == sorted(groups, key=list(OracleGroup).index)


def test_the_public_failures_of_tt_npe_are_replayed() -> None:
    names = " ".join(oracle.name for oracle in ORACLES if "tt-npe" in oracle.name)
    assert all(failure in names for failure in ("PR 125", "#127", "PR 130"))


def test_a_second_oracle_of_one_name_is_refused() -> None:
    with pytest.raises(RegistryError, match="two oracles 'XX1 holds'"):
        build_table((*SOME, SOME[0]))


def test_a_broken_oracle_stays_in_the_record_and_decides_the_verdict() -> None:
    record = run_oracles(EngineKind.REFERENCE, progress=ignore, oracles=SOME)
    assert not record.ok
    assert [(row.name, row.ok) for row in record.oracles] == [
        ("XX1 holds", True),
        ("XX2 is broken", False),
    ]
    assert record.oracles[0].expected == 7
    assert record.oracles[1].error == pytest.approx(5 / 3)


def test_one_group_runs_alone() -> None:
    record = run_oracles(
        EngineKind.REFERENCE, group=OracleGroup.QUEUES, progress=ignore, oracles=SOME
    )
    assert record.ok
    assert [row.name for row in record.oracles] == ["XX1 holds"]


def test_slow_oracles_run_when_they_are_asked_for() -> None:
    table = (SOME[0], Oracle("XX3 takes long", OracleGroup.QUEUES, right, is_slow=True))
    quick, whole = (
        run_oracles(EngineKind.REFERENCE, with_slow=with_slow, progress=ignore, oracles=table)
        for with_slow in (False, True)
    )
    assert [row.name for row in quick.oracles] == ["XX1 holds"]
    assert quick.skipped == ("1 slow oracles; --all runs them",)
    assert [row.name for row in whole.oracles] == ["XX1 holds", "XX3 takes long"]
    assert whole.skipped == ()


def test_progress_tells_each_group_as_it_begins() -> None:
    told: list[str] = []
    run_oracles(EngineKind.REFERENCE, progress=told.append, oracles=SOME)
    assert told == ["queues: 1 oracles (0 of 2 done)", "hbm: 1 oracles (1 of 2 done)"]


def test_the_page_shows_the_bad_rows_too() -> None:
    page = validation_page(run_oracles(EngineKind.REFERENCE, progress=ignore, oracles=SOME))
    assert "| XX1 holds | 7 | 7 | ps | 0 | 0 | exact | holds |" in page
    assert "| XX2 is broken | 0.33333 | 2 | busy | 1.67 | 0 | bound | **FAILS** |" in page
    assert "**1 of 2 oracles hold.**" in page


def test_the_page_says_where_each_tolerance_comes_from() -> None:
    page = validation_page(run_oracles(EngineKind.REFERENCE, progress=ignore, oracles=SOME))
    for rule in Rule:
        assert f"\n| {rule.value} | " in page


def test_the_page_has_a_section_of_every_group() -> None:
    oracles = tuple(Oracle(f"XX of {group.value}", group, right) for group in OracleGroup)
    page = validation_page(run_oracles(EngineKind.REFERENCE, progress=ignore, oracles=oracles))
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == [group.value for group in OracleGroup]
