"""From a kernel and its arguments to programs on PEs: who runs where, and what each sees."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tilewright import language
from tilewright.errors import KernelError
from tilewright.executor.grid import checked_grid
from tilewright.executor.launcher import Share, Terms, check_pes
from tilewright.executor.neighbour import Neighbours
from tilewright.executor.post import Post
from tilewright.executor.quiet import rare_collections
from tilewright.executor.run import Counters, Run
from tilewright.language.kernel import Kernel
from tilewright.language.triton_adaptor import adapt_kernel
from tilewright.machine.coords import PeCoord
from tilewright.machine.grid import HARDWARE_AXES, place_on_axis
from tilewright.runtime.driver import Driver
from tilewright.runtime.host_call import check_host_call
from tilewright.runtime.launch_arguments import Binding, replicated, tensors_of
from tilewright.runtime.launch_gate import LaunchGate
from tilewright.runtime.launch_grid import Grid, On, programs_of_grid
from tilewright.runtime.launch_report import LaunchReport
from tilewright.runtime.pending import Pending
from tilewright.runtime.request import Request
from tilewright.runtime.ring_space import OwnRings, place_rings
from tilewright.runtime.tensor import Tensor, TensorOwner

__all__ = ("LaunchOptions", "LaunchOwner", "launch", "tell_rings")


class LaunchOwner(TensorOwner, Protocol):
    """The context that launches, and that made the tensors."""

    def device_pes(self) -> Sequence[PeCoord]:
        """Return the PEs of the caller's current device, in the order of their coordinates."""


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """All of a launch but the kernel and its arguments."""

    name: str | None = None
    grid: Grid | None = None
    on: On | None = None
    neighbours: Neighbours | Post | Mapping[Any, Mapping[str, Any]] | None = None
    """Rings for this launch, by PE or program and direction; a Post is rings that are there.

    None: each PE uses the rings that were installed there last, if there are any.
    """
    resident: int = 1
    synchronised_start: bool = False
    carries_data: bool = True
    earliest_start_ps: int = 0  # simulated time before which no program begins


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
    adapted = adapt_kernel(kernel, language)
    tensors = list(tensors_of([*args, *kwargs.values()]))
    where = f"kernel {adapted.name!r}"
    for tensor in tensors:
        _check_tensor(where, tensor, owner)
    binding = Binding(adapted, tuple(args), dict(kwargs), has_grid=options.grid is not None)
    _check_on(where, options)
    pes = _pes(tensors, options.on, owner)
    if not pes:
        return _nothing(driver, adapted, options)
    check_pes(adapted, pes)
    _check_resident(where, options)
    ids_of: Mapping[PeCoord, Sequence[tuple[int, ...]]]
    if options.grid is None:
        grid, ids_of = _one_each(pes)
    else:
        _check_global(where, tensors)
        grid = checked_grid(adapted, binding.grid(options.grid, pes[0]), driver.limits)
        ids_of = programs_of_grid(where, grid, pes, options.on)
    _check_places(where, ids_of, driver)
    shares = [Share(pe, ids, binding.seen_on(pe)) for pe, ids in ids_of.items() if ids]
    if not shares:
        return _nothing(driver, adapted, options, grid)
    terms = _terms(driver, adapted, grid, ids_of, tensors, options)
    neighbours, rings = place_rings(driver, terms.neighbours, options.name or adapted.name)
    try:
        terms = replace(terms, neighbours=neighbours)
        num_arguments = len(args) + len(kwargs)
        return _send(driver, terms, shares, options, tuple(tensors), num_arguments, rings)
    except BaseException:
        rings.free()
        raise


def _terms(
    driver: Driver,
    kernel: Kernel,
    grid: tuple[int, ...],
    ids_of: Mapping[PeCoord, Sequence[tuple[int, ...]]],
    tensors: Sequence[Tensor],
    options: LaunchOptions,
) -> Terms:
    """Gather what holds for all programs, the rings that they use included."""
    given = options.neighbours
    post = given if isinstance(given, Post) else None
    own = None if isinstance(given, Post) else _neighbours(f"kernel {kernel.name!r}", given, ids_of)
    return Terms(
        kernel,
        grid,
        carries_data=options.carries_data,
        neighbours=own,
        post=post,
        installed=driver.installed_on(ids_of) if given is None else {},
        resident=options.resident,
        replicas=() if options.grid is None else tuple(replicated(tensors)),
        observer=None if driver.observer is None else driver.observer.commands,
        sanitizer=None if driver.watch is None else driver.watch.sanitizer,
        limits=driver.limits,
    )


def _send(
    driver: Driver,
    terms: Terms,
    shares: Sequence[Share],
    options: LaunchOptions,
    tensors: tuple[Tensor, ...],
    num_arguments: int,
    rings: OwnRings,
) -> Pending:
    name = options.name or terms.kernel.name
    entries = {share.pe: num_arguments for share in shares}
    driver.launcher.check_room(entries)
    before: list[Request] = []
    if terms.neighbours is not None:
        before.append(tell_rings(driver, f"rings of {name!r}", terms.neighbours))
    common_start = None
    if options.synchronised_start:
        before.append(_announce(driver, f"announcement of {name!r}", entries, before))
        signal = driver.device.engine.add_signal(
            f"start of {name!r} after request {before[-1].request_id}"
        )
        common_start = signal, len(shares)
        delivery = driver.path.deliver(
            dict.fromkeys(entries, 0), is_shared=True, raises=common_start[0]
        )
    else:
        delivery = driver.path.deliver(entries, is_shared=True)
    submitted_ps = driver.now_ps
    request, arrivals = driver.deliver(f"launch of {name!r}", delivery, before)
    gate = LaunchGate(driver.running, delivery, arrivals, common_start, options.earliest_start_ps)
    run = driver.launcher.start(driver.hub, driver.effects, terms, shares, gate)
    request.programs = frozenset(run.owners)
    request.rings = None if terms.neighbours is None else run.post
    for stream in run.streams:
        gate.expect(stream.pe.coord)
    pending = Pending(driver, request, tensors)
    if driver.watch is not None:
        driver.watch.note_request(request, run.sanitizer.launch)
    if driver.observer is not None:
        driver.observer.launch_submitted(name, terms.kernel.name, run.owners)

    def settle() -> None:
        rings.free()
        if request.failures:  # an error has ended the programs
            pending.settle(None)
            return
        if request.rings is not None:
            request.failures.extend(request.rings.unreceived(name))
            driver.launcher.give_back(request.rings)
            request.rings = None
        if common_start is not None:
            driver.device.engine.remove_signal(common_start[0])
        report = _report(name, terms, shares, gate, run, submitted_ps, driver)
        pending.settle(report)
        driver.note_launch(report)

    request.listeners.append(settle)
    return pending


def _report(
    name: str,
    terms: Terms,
    shares: Sequence[Share],
    gate: LaunchGate,
    run: Run,
    submitted_ps: int,
    driver: Driver,
) -> LaunchReport:
    last_end_ps = max(end_ps for end_ps, _ in gate.ends.values())
    last_pe = min(pe for pe, (end_ps, _) in gate.ends.items() if end_ps == last_end_ps)
    return LaunchReport(
        name,
        terms.kernel.name,
        terms.grid,
        sum(len(share.ids) for share in shares),
        driver.shared_pes(tuple(share.pe for share in shares)),
        submitted_ps,
        min(gate.starts_ps.values()),
        max(gate.starts_ps.values()),
        last_end_ps,
        driver.now_ps,
        last_pe,
        gate.ends[last_pe][1],
        run.counters,
        max(end_ps - gate.starts_ps[pe] for pe, (end_ps, _) in gate.ends.items()),
    )


def _nothing(
    driver: Driver, kernel: Kernel, options: LaunchOptions, grid: tuple[int, ...] = (0,)
) -> Pending:
    """A launch without programs: nothing is sent, and it is over at once."""
    name, now_ps = options.name or kernel.name, driver.now_ps
    request = driver.completed_request(f"launch of {name!r}")
    pending = Pending(driver, request)
    times = (now_ps, now_ps, now_ps, now_ps, now_ps)
    report = LaunchReport(name, kernel.name, grid, 0, (), *times, None, None, Counters())
    pending.settle(report)
    driver.note_launch(report)
    return pending


# -- commands that go before -----------------------------------------------------------------------


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


# -- who runs where --------------------------------------------------------------------------------


def _pes(tensors: Sequence[Tensor], on: On | None, owner: LaunchOwner) -> list[PeCoord]:
    """Return the PEs of a launch in the order in which programs are dealt to them.

    ``on`` says which, else those that hold a shard of an argument, else those of the device.
    """
    if isinstance(on, Tensor):
        return sorted(on.placement.homes)
    if on is not None and not callable(on):
        return list(on)
    if not tensors:
        return list(owner.device_pes())
    return sorted({pe for tensor in tensors for pe in tensor.placement.homes})


def _check_on(where: str, options: LaunchOptions) -> None:
    """Refuse a function that places the programs of a grid where there is no grid."""
    on = options.on
    if options.grid is None and callable(on) and not isinstance(on, Tensor):
        found = f"on={on!r}, a function of a program's ids, without a grid"
        fix = "pass grid=, or on= with the PEs that run a program each"
        raise KernelError(where, found, "a grid whose programs it places", fix)


def _one_each(
    pes: Sequence[PeCoord],
) -> tuple[tuple[int, ...], dict[PeCoord, list[tuple[int, ...]]]]:
    """One program a PE: its axes are PE, cube and SIP, counted among those of the launch."""
    places = {pe: [place_on_axis(pe, pes, axis) for axis in HARDWARE_AXES] for pe in pes}
    ids_of = {pe: [tuple(place for place, _ in axes)] for pe, axes in places.items()}
    grid = tuple(
        max(axes[number][1] for axes in places.values()) for number in range(len(HARDWARE_AXES))
    )
    return grid, ids_of


def _check_global(where: str, tensors: Iterable[Tensor]) -> None:
    for tensor in tensors:
        placement = tensor.placement
        if not placement.is_global:
            found = (
                f"a grid with {placement.where}, whose shards are no page-aligned row-major ranges"
            )
            fix = (
                f"place it with Interleave({placement.page_bytes}) or in whole pages by its first "
                "axis, or launch without a grid"
            )
            raise KernelError(where, found, "tensors that every PE sees as a whole", fix)


def _check_tensor(where: str, tensor: Tensor, owner: TensorOwner) -> None:
    if tensor.owner is not owner:
        found = f"tensor {tensor.name!r} of another context"
        raise KernelError(where, found, "tensors of this context", "copy it to one of these")
    if tensor.is_host:
        found = f"tensor {tensor.name!r}, which is on the host"
        fix = "copy_ it into a tensor that has a placement"
        raise KernelError(where, found, "tensors in the machine", fix)


def _check_places(where: str, pes: Iterable[PeCoord], driver: Driver) -> None:
    there = driver.machine.grid
    for pe in pes:
        if not isinstance(pe, PeCoord) or not there.has(pe):
            fix = "correct on="
            raise KernelError(where, f"{pe!r} to run on", "a PE of the machine", fix)


def _check_resident(where: str, options: LaunchOptions) -> None:
    resident = options.resident
    if type(resident) is not int or resident < 1:
        fix = "correct it"
        raise KernelError(where, f"resident={resident!r}", "a whole number from 1 up", fix)
    if resident > 1 and options.neighbours is not None:
        found = f"resident={resident} with neighbours"
        expected = "one program at a time on a PE that has queues: they are the PE's"
        raise KernelError(where, found, expected, "leave one of them out")


def _neighbours(
    where: str, given: Any, ids_of: Mapping[PeCoord, Sequence[tuple[int, ...]]]
) -> Neighbours | None:
    """PEs or program ids as keys; a program stands for its PE."""
    if given is None or isinstance(given, Neighbours):
        return given
    place_of = {ids: pe for pe, all_ids in ids_of.items() for ids in all_ids}
    find: Callable[[Any], PeCoord] = lambda who: _place(where, who, place_of)  # noqa: E731
    table: dict[PeCoord, dict[str, PeCoord]] = {}
    for who, directions in given.items():
        table.setdefault(find(who), {}).update(
            {direction: find(peer) for direction, peer in directions.items()}
        )
    return Neighbours(table)


def _place(where: str, who: Any, place_of: Mapping[tuple[int, ...], PeCoord]) -> PeCoord:
    if isinstance(who, PeCoord):
        return who
    ids = (who,) if isinstance(who, int) else who
    if ids not in place_of:
        found = f"the neighbour {who!r}"
        raise KernelError(where, found, "a PE or the ids of a program", "correct the neighbours")
    return place_of[ids]
