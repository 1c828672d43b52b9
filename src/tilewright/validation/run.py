"""The table of all oracles, and the run that makes a record of them. A new oracle is one entry."""

import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from importlib.metadata import version
from importlib.util import find_spec
from types import MappingProxyType

from tilewright.engine import EngineKind
from tilewright.errors import RegistryError
from tilewright.records import OracleRow, ValidateRecord, installed_versions
from tilewright.trust import is_code_refused
from tilewright.validation import advice, bound, link, memory, phase, queue, roofline
from tilewright.validation.address import rules as address
from tilewright.validation.collective import bound as collective_bound
from tilewright.validation.collective import closed_form, machine
from tilewright.validation.conservation import replay
from tilewright.validation.conservation import rules as conservation
from tilewright.validation.finding import Finding, Oracle, OracleGroup, Row
from tilewright.validation.gemm import product
from tilewright.validation.hbm import data_sheet
from tilewright.validation.kernbench import rules as kernbench
from tilewright.validation.noc import mesh as noc
from tilewright.validation.noc import saturation
from tilewright.validation.triton import scalar
from tilewright.validation.vortex import rules as vortex
from tilewright.validation.vortex import state

TABLES: Mapping[OracleGroup, tuple[Callable[[], Iterable[Row]], ...]] = MappingProxyType(
    {
        OracleGroup.QUEUES: (queue.oracles,),
        OracleGroup.NOC: (noc.oracles, saturation.oracles),
        OracleGroup.HBM: (data_sheet.oracles,),
        OracleGroup.MEMORY: (memory.oracles,),
        OracleGroup.LINKS: (link.oracles,),
        OracleGroup.GEMM: (product.oracles,),
        OracleGroup.ROOFLINE: (roofline.oracles,),
        OracleGroup.COLLECTIVES: (closed_form.oracles, collective_bound.oracles, machine.oracles),
        OracleGroup.CONSERVATION: (conservation.oracles, replay.oracles),
        OracleGroup.ADDRESSES: (address.oracles,),
        OracleGroup.TRITON: (scalar.oracles,),
        OracleGroup.VORTEX: (vortex.oracles, state.oracles),
        OracleGroup.KERNBENCH: (kernbench.oracles,),
        OracleGroup.PHASES: (phase.oracles,),
        OracleGroup.BOUNDS: (bound.oracles,),
        OracleGroup.ADVICE: (advice.oracles,),
    }
)


def build_table(oracles: Iterable[Oracle]) -> tuple[Oracle, ...]:
    """Return the oracles in their order; a second one of a name is refused."""
    table: dict[str, Oracle] = {}
    for oracle in oracles:
        if oracle.name in table:
            found = f"two oracles {oracle.name!r}"
            raise RegistryError("validate", found, "one of each name", "rename one")
        table[oracle.name] = oracle
    return tuple(table.values())


ORACLES = build_table(
    Oracle(name, group, check, *slow)
    for group in OracleGroup
    for table in TABLES[group]
    for name, check, *slow in table()
)


NEEDED = MappingProxyType({OracleGroup.TRITON: ("triton", "3.9")})
"""By group: the package that its oracles need, and the oldest version that takes all of them."""

CODE_GROUPS = (OracleGroup.VORTEX, OracleGroup.KERNBENCH)
"""Groups whose flows and programs are loaded from files, as those of users are."""


def run_oracles(
    kind: EngineKind,
    *,
    group: OracleGroup | None = None,
    with_slow: bool = False,
    progress: Callable[[str], None],
    oracles: tuple[Oracle, ...] = ORACLES,
) -> ValidateRecord:
    """Put every oracle of the group, or all, to the test; ``progress`` is told each new group.

    A group whose package is not installed or too old, or whose code is refused, is left out, and
    the record says so; slow oracles are left out unless they are asked for.
    """
    reasons = {each: _missing(*package) for each, package in NEEDED.items()}
    absent = {each: reason for each, reason in reasons.items() if reason}
    if is_code_refused():
        absent |= dict.fromkeys(CODE_GROUPS, "its files are code, which --no-code refuses")
    asked = [
        oracle for oracle in oracles if group in (None, oracle.group) and oracle.group not in absent
    ]
    chosen = [oracle for oracle in asked if with_slow or not oracle.is_slow]
    skipped = [f"{each.value}: {why}" for each, why in absent.items() if group in (None, each)]
    if len(chosen) < len(asked):
        skipped.append(f"{len(asked) - len(chosen)} slow oracles; --all runs them")
    rows: list[OracleRow] = []
    for oracle in chosen:
        if not rows or rows[-1].group != oracle.group.value:
            count = sum(other.group is oracle.group for other in chosen)
            progress(f"{oracle.group.value}: {count} oracles ({len(rows)} of {len(chosen)} done)")
        rows.append(_row(oracle, oracle.check(kind)))
    return ValidateRecord(
        versions=installed_versions(engine=kind.value),
        ok=all(row.ok for row in rows),
        oracles=tuple(rows),
        skipped=tuple(skipped),
    )


def _missing(package: str, oldest: str) -> str:
    """Return why nothing can be compared with a package; empty if it can."""
    if find_spec(package) is None:
        return f"{package} is not installed, so nothing is compared; see the extra [bench]"
    found = version(package)
    if _release(found) < _release(oldest):
        return (
            f"{package} {found} lacks what {oldest} has, so nothing is compared; "
            f"install {package}>={oldest}"
        )
    return ""


def _release(text: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


def _row(oracle: Oracle, finding: Finding) -> OracleRow:
    return OracleRow(
        name=oracle.name,
        group=oracle.group.value,
        unit=finding.unit,
        rule=finding.rule.value,
        expected=_plain(finding.expected),
        found=_plain(finding.found),
        error=_plain(finding.error),
        tolerance=_plain(finding.tolerance),
        ok=finding.ok,  # decided on the exact values, not on these
    )


def _plain(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)
