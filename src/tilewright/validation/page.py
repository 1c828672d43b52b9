"""The page of the documentation that shows every oracle, good rows and bad ones alike."""

from jinja2 import Environment, PackageLoader, StrictUndefined

from tilewright.records import OracleRow, ValidateRecord
from tilewright.validation.finding import OracleGroup


def validation_page(record: ValidateRecord) -> str:
    """Return Markdown, made from ``page.md``; equal figures give equal bytes."""
    environment = Environment(
        loader=PackageLoader("tilewright.validation", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    rows = record.oracles
    tables = {
        group.value: [_cells(row) for row in rows if row.group == group.value]
        for group in OracleGroup
    }
    held = sum(row.ok for row in rows)
    return environment.get_template("page.md").render(tables=tables, held=held, total=len(rows))


def _cells(row: OracleRow) -> tuple[str, ...]:
    numbers = [figure(value) for value in (row.expected, row.found)]
    limits = [figure(value, digits=3) for value in (row.error, row.tolerance)]
    verdict = "holds" if row.ok else "**FAILS**"
    return (row.name, *numbers, row.unit, *limits, row.rule, verdict)


def figure(value: float, digits: int = 5) -> str:
    """Return whole numbers as they are, others to some digits.

    >>> figure(139199), figure(1747.361234), figure(0.0)
    ('139199', '1747.4', '0')
    """
    return str(value) if isinstance(value, int) else f"{value:.{digits}g}"
