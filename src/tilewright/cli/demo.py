"""``tilewright demo``."""

from rich.console import Group, RenderableType
from rich.text import Text

from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.output import note
from tilewright.cli.speed_table import speed_table
from tilewright.cli.startup import engine_line
from tilewright.engine import AUTO, native_built, resolve_engine
from tilewright.records import DemoRecord
from tilewright.studies.demo import run_demo

__all__ = ("demo",)


def demo(_json: JsonOption = False) -> Outcome:
    """Show what there is: the event engines on three loads, in under a minute.

    Time on a machine is made of packets that wait for links. The engine computes when each packet
    passes each link, in whole picoseconds. Two engines do it, one in readable Python and one in
    C++; the table shows that they agree on every packet, and how many packet hops a second of
    your time buys.
    """
    built = native_built()
    note(engine_line(resolve_engine(AUTO, native_built=built).value, built))
    record = run_demo(progress=note)
    return Outcome(record, _view(record), passed=record.identical)


def _view(record: DemoRecord) -> RenderableType:
    return Group(speed_table(record.workloads), Text(_meaning(record)))


def _meaning(record: DemoRecord) -> str:
    engines = {row.implementation for row in record.workloads}
    if not record.identical:
        return "The engines DISAGREE: their digests differ. Please report this as a bug."
    if len(engines) == 1:
        return (
            "One engine ran, since this install has no compiled core; with one, a second engine "
            "gives the same digests and runs many times faster.\n" + _NEXT
        )
    return (
        "Equal digests: both engines computed the same arrival time, to the picosecond, for every "
        "packet.\nA hop is one packet passing one link, with queueing; ev/hop: events that were "
        "handled per hop;\nspeed-up is against the first row of its load.\n" + _NEXT
    )


_NEXT = (
    "Next: `tilewright bench engine` sets both beside SimPy (extra `bench`); "
    "docs/engine.md says what an engine computes."
)
