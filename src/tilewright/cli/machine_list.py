"""``tilewright machine list``: the machines that ship."""

from dataclasses import asdict

from rich.text import Text

from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.machine.file_check import load_machine
from tilewright.machine.presets import list_presets, preset_summary
from tilewright.machine.totals import totals_of
from tilewright.records import MachineFigures
from tilewright.records.machine import MachineListRecord, MachineRow
from tilewright.report.format import rate_text
from tilewright.units import format_bytes


def summaries() -> list[tuple[str, str]]:
    """Return the names, each with what its machine is for."""
    return [(name, preset_summary(name)) for name in list_presets()]


def list_(_json: JsonOption = False) -> Outcome:
    """List the machines that ship.

    A line for each: SIPs (packages), cubes (dies), PEs, capacity and rate of the HBM, and what it
    is for. tilewright machine show NAME tells all of it.
    """
    record = MachineListRecord(machines=tuple(_row(*each) for each in summaries()))
    return Outcome(record, _view(record))


def _row(name: str, summary: str) -> MachineRow:
    figures = MachineFigures(**asdict(totals_of(load_machine(name))))
    return MachineRow(name=name, summary=summary, figures=figures)


def _view(record: MachineListRecord) -> Text:
    width = max(len(row.name) for row in record.machines)
    view = Text(f"{'':<{width}}  SIPs  cubes   PEs       HBM    HBM rate\n", style="dim")
    for row in record.machines:
        figures = row.figures
        counts = f"{figures.num_sips:>6}{figures.num_cubes:>7}{figures.num_pes:>6}"
        hbm = f"{format_bytes(figures.hbm_bytes):>10}{rate_text(figures.hbm_bytes_per_us):>13}"
        view.append(f"{row.name:<{width}}", style="bold")
        view.append(f"{counts}{hbm}  {row.summary}\n")
    return view.append("\nall of one: tilewright machine show NAME", style="dim")
