"""The third step of a launch: its command to the PEs, and the commands that go before it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.executor.launcher import Share
from tilewright.executor.neighbour import Neighbours
from tilewright.executor.run import Terms
from tilewright.machine.coords import PeCoord
from tilewright.runtime.driver import Driver
from tilewright.runtime.launch.gate import LaunchGate
from tilewright.runtime.launch.options import LaunchOptions
from tilewright.runtime.request import Request


@dataclass(frozen=True, slots=True)
class Sent:
    """A command under way: its request, and the gate that opens where it has arrived."""

    request: Request
    gate: LaunchGate
    submitted_ps: int
    common_start: int | None  # the signal of a common start


def send(
    driver: Driver,
    name: str,
    terms: Terms,
    shares: Sequence[Share],
    options: LaunchOptions,
    num_arguments: int,
) -> Sent:
    """Send the command of a launch to its PEs, and before it what they have to know."""
    entries = {share.pe: num_arguments for share in shares}
    driver.launcher.check_room(entries)
    before: list[Request] = []
    if terms.neighbours is not None:
        before.append(tell_rings(driver, f"rings of {name!r}", terms.neighbours))
    signal = None
    if options.synchronised_start:
        before.append(_announce(driver, f"announcement of {name!r}", entries, before))
        signal = driver.device.engine.add_signal(
            f"start of {name!r} after request {before[-1].request_id}"
        )
        delivery = driver.path.deliver(dict.fromkeys(entries, 0), is_shared=True, raises=signal)
    else:
        delivery = driver.path.deliver(entries, is_shared=True)
    submitted_ps = driver.now_ps
    request, arrivals = driver.deliver(f"launch of {name!r}", delivery, before)
    common_start = None if signal is None else (signal, len(shares))
    gate = LaunchGate(driver.running, delivery, arrivals, common_start, options.earliest_start_ps)
    return Sent(request, gate, submitted_ps, signal)


def tell_rings(driver: Driver, what: str, neighbours: Neighbours) -> Request:
    """Tell each PE its rings: those that it sends to and those that it receives from."""
    entries: dict[PeCoord, int] = {}
    for pe, directions in neighbours.table.items():
        entries[pe] = entries.get(pe, 0) + len(directions)
        for peer in directions.values():
            entries[peer] = entries.get(peer, 0) + 1
    return _told(driver, what, entries, is_shared=False)


def _announce(
    driver: Driver, what: str, entries: Mapping[PeCoord, int], before: Iterable[Request]
) -> Request:
    """All PEs say that they are ready."""
    return _told(driver, what, entries, is_shared=True, before=before)


def _told(
    driver: Driver,
    what: str,
    entries: Mapping[PeCoord, int],
    *,
    is_shared: bool,
    before: Iterable[Request] = (),
) -> Request:
    delivery = driver.path.deliver(entries, is_shared=is_shared)
    for pe in entries:
        driver.path.answer(delivery.graph, pe, delivery.answers[pe], (delivery.arrivals[pe],))
    return driver.deliver(what, delivery, before)[0]
