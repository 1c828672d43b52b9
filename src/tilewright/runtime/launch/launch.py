"""From a kernel and its arguments to programs on PEs: bind, place, send, run, report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright.engine import TaskGraph
from tilewright.errors import KernelError
from tilewright.executor.neighbour import Neighbours
from tilewright.executor.post import Post
from tilewright.executor.quiet import rare_collections
from tilewright.executor.run import Counters, Replicated, Run, Terms
from tilewright.machine.coords import PeCoord
from tilewright.runtime.driver import Driver
from tilewright.runtime.host_watch import check_host_call
from tilewright.runtime.launch.bind import Binding, LaunchOptions, LaunchOwner, bind
from tilewright.runtime.launch.place import Placed, place
from tilewright.runtime.launch.send import LaunchGate, place_rings, send
from tilewright.runtime.request import LaunchReport, Request


class Pending:
    """A launch that may be under way."""

    def __init__(self, driver: Driver, request: Request, keeps: tuple[Any, ...] = ()) -> None:
        self.request = request
        self._keeps = keeps  # alive as long as programs may use it
        self._driver = driver
        self._report: LaunchReport | None = None

    def __repr__(self) -> str:
        state = "complete" if self.is_completed else "under way"
        return f"<Pending {self.request.what}, {state}>"

    @property
    def is_completed(self) -> bool:
        return self.request.is_completed

    def wait(self) -> LaunchReport:
        """Wait until the host knows that all programs have ended, and return the report.

        Raises LaunchEndedError if an error has ended them, and MessageError if they have sent what
        none has received.
        """
        self._driver.wait(self.request)
        return self.report

    @property
    def report(self) -> LaunchReport:
        """The report of a launch that has succeeded; raises what ``wait`` raises."""
        self.request.check()  # refuses one that is under way
        return self._report  # type: ignore[return-value]  # there once it is complete

    def settle(self, report: LaunchReport | None) -> None:
        """Note that the launch is over; None: an error has ended it."""
        self._report = report
        self._keeps = ()


@rare_collections()
def launch(
    driver: Driver,
    owner: LaunchOwner,
    kernel: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    options: LaunchOptions,
) -> Pending:
    """Send a kernel to its PEs; refuse before anything is sent what cannot run."""
    check_host_call("launch")
    binding = bind(kernel, args, kwargs, owner, has_grid=options.grid is not None)
    name = options.name or binding.kernel.name
    placed = place(binding, options, owner, driver)
    if not placed.shares:
        return _nothing(driver, name, binding.kernel.name, placed.grid)
    terms = _terms(driver, binding, placed, options)
    neighbours, free_rings = place_rings(driver, terms.neighbours, name)
    try:
        terms = replace(terms, neighbours=neighbours)
        num_arguments = len(binding.args) + len(binding.kwargs)
        gate = send(driver, name, terms, placed.shares, options, num_arguments)
        # programs wait at the gate for the command
        run = driver.launcher.start(driver.hub, driver.running.effects, terms, placed.shares, gate)
        gate.request.programs = frozenset(run.owners)
        gate.request.rings = None if terms.neighbours is None else run.post
        gate.num_streams.update(stream.pe.coord for stream in run.streams)
        return _report_at_end(driver, name, binding, placed, gate, run, free_rings)
    except BaseException:
        free_rings()
        raise


def _report_at_end(
    driver: Driver,
    name: str,
    binding: Binding,
    placed: Placed,
    gate: LaunchGate,
    run: Run,
    free_rings: Callable[[], None],
) -> Pending:
    """Return the handle of the launch, which gets the report when all programs have ended."""
    request = gate.request
    pending = Pending(driver, request, binding.tensors)
    if driver.watch is not None:
        driver.watch.note_request(request, run.sanitizer.launch)
    if driver.observer is not None:
        driver.observer.launch_submitted(name, binding.kernel.name, run.owners)

    def settle() -> None:
        free_rings()
        if request.failures:  # an error has ended the programs
            pending.settle(None)
            return
        if request.rings is not None:
            request.failures.extend(request.rings.unreceived(name))
            driver.launcher.give_back(request.rings)
            request.rings = None
        if gate.common_start is not None:
            driver.device.engine.remove_signal(gate.common_start[0])
        report = _report(driver, name, binding.kernel.name, placed, gate, run)
        pending.settle(report)
        driver.note_launch(report)

    request.listeners.append(settle)
    return pending


def _report(
    driver: Driver, name: str, kernel: str, placed: Placed, gate: LaunchGate, run: Run
) -> LaunchReport:
    shares, starts_ps, ends = placed.shares, gate.starts_ps, gate.ends
    last_end_ps = max(end_ps for end_ps, _ in ends.values())
    last_pe = min(pe for pe, (end_ps, _) in ends.items() if end_ps == last_end_ps)
    pes = tuple(share.pe for share in shares)
    return LaunchReport(
        name,
        kernel,
        placed.grid,
        sum(len(share.ids) for share in shares),
        driver.pes.setdefault(pes, pes),
        gate.request.submitted_ps,
        min(starts_ps.values()),
        max(starts_ps.values()),
        last_end_ps,
        driver.now_ps,
        last_pe,
        ends[last_pe][1],
        run.counters,
        max(end_ps - starts_ps[pe] for pe, (end_ps, _) in ends.items()),
    )


def _nothing(driver: Driver, name: str, kernel: str, grid: tuple[int, ...]) -> Pending:
    """A launch without programs: nothing is sent, and it is over at once."""
    now_ps = driver.now_ps
    request = driver.submit(f"launch of {name!r}", TaskGraph())
    pending = Pending(driver, request)
    times = (now_ps, now_ps, now_ps, now_ps, now_ps)
    report = LaunchReport(name, kernel, grid, 0, (), *times, None, None, Counters())
    pending.settle(report)
    driver.note_launch(report)
    return pending


# -- what holds for all programs -------------------------------------------------------------------


def _terms(driver: Driver, binding: Binding, placed: Placed, options: LaunchOptions) -> Terms:
    """Gather what holds for all programs, the rings that they use included."""
    given, ids_of = options.neighbours, placed.ids_of
    replicas = []
    for tensor in dict.fromkeys(() if options.grid is None else binding.tensors):
        low, placement = tensor.address, tensor.placement
        if len(placement.owners) < len(placement.shards):
            replicas.append(Replicated(low, low + placement.num_bytes, tensor.name))
    installed = {pe: driver.installed[pe] for pe in ids_of if pe in driver.installed}
    post = given if isinstance(given, Post) else None
    own = None if isinstance(given, Post) else _neighbours(binding.where, given, ids_of)
    return Terms(
        binding.kernel,
        placed.grid,
        carries_data=options.carries_data,
        neighbours=own,
        post=post,
        installed=installed if given is None else {},
        resident=options.resident,
        replicas=replicas,
        observer=None if driver.observer is None else driver.observer.commands,
        sanitizer=None if driver.watch is None else driver.watch.sanitizer,
        limits=driver.limits,
    )


def _neighbours(
    where: str, given: Any, ids_of: Mapping[PeCoord, Sequence[tuple[int, ...]]]
) -> Neighbours | None:
    """PEs or program ids as keys; a program stands for its PE."""
    if given is None or isinstance(given, Neighbours):
        return given
    place_of = {ids: pe for pe, all_ids in ids_of.items() for ids in all_ids}

    def find(who: Any) -> PeCoord:
        if isinstance(who, PeCoord):
            return who
        ids = (who,) if isinstance(who, int) else who
        if ids not in place_of:
            found, expected = f"the neighbour {who!r}", "a PE or the ids of a program"
            raise KernelError(where, found, expected, "correct the neighbours")
        return place_of[ids]

    table: dict[PeCoord, dict[str, PeCoord]] = {}
    for who, directions in given.items():
        table.setdefault(find(who), {}).update(
            {direction: find(peer) for direction, peer in directions.items()}
        )
    return Neighbours(table)
