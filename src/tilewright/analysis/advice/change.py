"""Changes of one field of a machine file: a rate doubled, a latency halved."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import ValidationError

from tilewright.machine.field import HOST_LINK, spec_of_fields
from tilewright.records.document import JsonScalar

REFRESH = "cube.hbm.refresh.all_bank_ps"
PCIE_GENERATION = "host.pcie.generation"
INTERLEAVE, WINDOW = "cube.hbm.interleave_bytes", "pe.dma.in_flight_bytes"

_RATES = (
    "bytes_per_us", ".hz", "vector.lanes", "gemm.rows", "gemm.columns", "gemm.depth", ".generation",
)  # fmt: skip
_LATENCIES = ("_ps", "_clocks", "_cycles", "ps_per_mm")
_NEITHER = ("refresh.interval_ps", "refresh.phase_ps")
_PACES = {
    "pe.gemm.": "pe.gemm.hz",
    "pe.vector.": "pe.vector.hz",
    "cube.hbm.timing.": "cube.hbm.timing.clock_ps",
    PCIE_GENERATION: HOST_LINK,
}


class Change(NamedTuple):
    """One field of a machine file and its new value."""

    field: str
    value: int

    @property
    def option(self) -> str:
        """Return it as ``tilewright run`` takes it."""
        return f"--set {self.field}={self.value}"


def single_changes(fields: Mapping[str, JsonScalar]) -> Iterator[Change]:
    """Yield all changes that double one rate or halve one latency, and that a machine may have."""
    for field in fields:
        if field.endswith((*_RATES, *_LATENCIES)) and not field.endswith(_NEITHER):
            change = change_of(field, fields)
            if change is not None:
                yield change


def change_of(field: str, fields: Mapping[str, JsonScalar]) -> Change | None:
    """Return twice a rate or size, or half a latency, rounded up; None: no machine may have that.

    The next generation of PCIe has twice the rate.

    >>> from tilewright.machine import parse_machine
    >>> from tilewright.machine.field import flat_fields
    >>> fields = flat_fields(parse_machine("ahbm"))
    >>> change_of("pe.gemm.hz", fields).option
    '--set pe.gemm.hz=2000000000'
    >>> change_of("fabric.latency_ps", fields).option
    '--set fabric.latency_ps=100000'
    >>> change_of("host.pcie.lanes", fields) is None  # 16 are the most
    True
    """
    old = fields.get(field)
    if not isinstance(old, int) or isinstance(old, bool) or old <= 0:
        return None
    if field == PCIE_GENERATION:
        value = old + 1
    else:
        value = -(-old // 2) if field.endswith(_LATENCIES) else 2 * old
    if value == old:
        return None
    try:
        spec_of_fields({**fields, field: value})
    except ValidationError:
        return None
    return Change(field, value)


def pace_of(field: str) -> str:
    """Return the field under which a record has the times that this one sets, too.

    >>> pace_of("pe.gemm.rows"), pace_of("fabric.latency_ps")
    ('pe.gemm.hz', 'fabric.latency_ps')
    """
    return next((pace for start, pace in _PACES.items() if field.startswith(start)), field)
