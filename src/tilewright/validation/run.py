"""The table of all oracles, and the run that makes a record of them. A new oracle is one entry."""

import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from importlib.metadata import version
from importlib.util import find_spec
from types import MappingProxyType

from tilewright.engine import EngineKind
from tilewright.errors import RegistryError
from tilewright.records import OracleRow, ValidateRecord, installed_versions
from tilewright.trust import is_code_refused
from tilewright.validation.address.rules import ADDRESSES
from tilewright.validation.advice import ADVICE
from tilewright.validation.bound import BOUNDS
from tilewright.validation.collective.bound import COLLECTIVE_BOUNDS
from tilewright.validation.collective.closed_form import COLLECTIVES
from tilewright.validation.collective.machine import MACHINE_COLLECTIVES
from tilewright.validation.conservation.replay import REPLAYS
from tilewright.validation.conservation.rules import CONSERVATION
from tilewright.validation.finding import Finding, Oracle, OracleGroup
from tilewright.validation.gemm.product import GEMM
from tilewright.validation.hbm.data_sheet import HBM
from tilewright.validation.kernbench.rules import KERNBENCH
from tilewright.validation.link import LINKS
from tilewright.validation.memory import MEMORY
from tilewright.validation.noc.rules import NOC
from tilewright.validation.noc.saturation import SATURATION
from tilewright.validation.phase import PHASES
from tilewright.validation.queue import QUEUES
from tilewright.validation.roofline import ROOFLINE
from tilewright.validation.triton.scalar import TRITON
from tilewright.validation.vortex.rules import VORTEX
from tilewright.validation.vortex.state import VORTEX_STATE


def build_table(oracles: Iterable[Oracle]) -> tuple[Oracle, ...]:
    """By group, in the order of the groups; a second oracle of one name is refused."""
    table = tuple(oracles)
    names: set[str] = set()
    for oracle in table:
        if oracle.name in names:
            found = f"two oracles {oracle.name!r}"
            raise RegistryError("validate", found, "one of each name", "rename one")
        names.add(oracle.name)
    order = list(OracleGroup)
    return tuple(sorted(table, key=lambda oracle: order.index(oracle.group)))


ORACLES = build_table(
    (
        *QUEUES,
        *NOC,
        *SATURATION,
        *HBM,
        *MEMORY,
        *LINKS,
        *GEMM,
        *ROOFLINE,
        *COLLECTIVES,
        *COLLECTIVE_BOUNDS,
        *MACHINE_COLLECTIVES,
        *CONSERVATION,
        *REPLAYS,
        *ADDRESSES,
        *TRITON,
        *VORTEX,
        *VORTEX_STATE,
        *KERNBENCH,
        *PHASES,
        *BOUNDS,
        *ADVICE,
    )
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
        skipped=(
            *(
                f"{each.value}: {reason}"
                for each, reason in absent.items()
                if group in (None, each)
            ),
            *_left_out(len(asked) - len(chosen)),
        ),
    )


def _left_out(num_slow: int) -> Iterator[str]:
    if num_slow:
        yield f"{num_slow} slow oracles; --all runs them"


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
