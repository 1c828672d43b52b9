"""The second step of a launch: its programs on PEs, with the arguments that each PE sees."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tilewright.errors import KernelError
from tilewright.executor.launcher import Share, check_pes
from tilewright.executor.run import ProgramIds, checked_grid, dealt
from tilewright.machine.coords import HARDWARE_AXES, PeCoord, place_on_axis
from tilewright.runtime.driver import Driver
from tilewright.runtime.launch.bind import Binding, LaunchOptions, LaunchOwner, On
from tilewright.runtime.tensor.tensor import Tensor

Programs = Mapping[PeCoord, Sequence[tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Placed:
    """Who runs what; without shares nobody runs anything."""

    grid: tuple[int, ...]
    shares: tuple[Share, ...]
    ids_of: Programs = field(default_factory=dict)


def place(binding: Binding, options: LaunchOptions, owner: LaunchOwner, driver: Driver) -> Placed:
    """Deal the programs of a launch to PEs; refuse PEs and tensors that cannot run them."""
    where = binding.where
    on = options.on
    if options.grid is None and callable(on) and not isinstance(on, Tensor):
        found = f"on={on!r}, a function of a program's ids, without a grid"
        fix = "pass grid=, or on= with the PEs that run a program each"
        raise KernelError(where, found, "a grid whose programs it places", fix)
    pes = _pes(binding.tensors, on, owner)
    if not pes:
        return Placed((0,), ())
    check_pes(binding.kernel, pes)
    _check_resident(where, options)
    ids_of: Programs
    if options.grid is None:
        # one program a PE: its axes are PE, cube and SIP, counted among those of the launch
        places = {pe: [place_on_axis(pe, pes, axis) for axis in HARDWARE_AXES] for pe in pes}
        ids_of = {pe: [tuple(place for place, _ in axes)] for pe, axes in places.items()}
        counts = zip(*([count for _, count in axes] for axes in places.values()), strict=True)
        grid = tuple(map(max, counts))
    else:
        _check_global(where, binding.tensors)
        wanted = options.grid
        if callable(wanted):
            wanted = wanted(binding.bound(pes[0]))
        grid = checked_grid(binding.kernel, wanted, driver.limits)
        ids_of = _programs_of_grid(where, grid, pes, on)
    for pe in ids_of:
        if not isinstance(pe, PeCoord) or not driver.machine.grid.has(pe):
            raise KernelError(where, f"{pe!r} to run on", "a PE of the machine", "correct on=")
    shares = tuple(Share(pe, ids, binding.seen_on(pe)) for pe, ids in ids_of.items() if ids)
    return Placed(grid, shares, ids_of)


def _programs_of_grid(
    where: str, grid: tuple[int, ...], pes: Sequence[PeCoord], on: On | None
) -> Programs:
    """The ids of programs by PE; ``pes`` are those that are dealt to in turn."""
    if not callable(on) and not isinstance(on, Tensor):
        return dict(zip(pes, dealt(grid, len(pes)), strict=True))
    programs: dict[PeCoord, list[tuple[int, ...]]] = {}
    num_programs = prod(grid)
    for number, ids in enumerate(ProgramIds(grid, range(num_programs))):
        if isinstance(on, Tensor):  # program i of n runs where byte i/n of the tensor is
            pe = on.placement.owner_of(number * on.placement.num_bytes // num_programs)
        else:
            pe = on(*ids)
            if not isinstance(pe, PeCoord):
                fix = "return PeCoord(sip, cube, pe)"
                raise KernelError(where, f"on{ids} = {pe!r}", "a PeCoord", fix)
        programs.setdefault(pe, []).append(ids)
    return programs


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


def _check_resident(where: str, options: LaunchOptions) -> None:
    resident = options.resident
    if type(resident) is not int or resident < 1:
        fix = "correct it"
        raise KernelError(where, f"resident={resident!r}", "a whole number from 1 up", fix)
    if resident > 1 and options.neighbours is not None:
        found = f"resident={resident} with neighbours"
        expected = "one program at a time on a PE that has queues: they are the PE's"
        raise KernelError(where, found, expected, "leave one of them out")
