"""``tilewright list``: what can be run by name."""

from tilewright.programs import PROGRAMS
from tilewright.programs.contract import BenchProgram
from tilewright.records.explain import ListRecord, ProgramParameter, ProgramRow
from tilewright.studies.run.source import find_program


def list_programs(name: str | None = None) -> ListRecord:
    """All ready programs, or one of them; an unknown name is refused."""
    chosen = PROGRAMS.values() if name is None else (find_program(name),)
    return ListRecord(programs=tuple(_row(program) for program in chosen))


def _row(program: BenchProgram) -> ProgramRow:
    parameters = tuple(
        ProgramParameter(
            name=each.name,
            type=each.kind.__name__,
            default=each.default,
            choices=each.choices,
            help=each.help,
        )
        for each in program.parameters
    )
    return ProgramRow(
        name=program.name, summary=program.summary, machine=program.machine, parameters=parameters
    )
