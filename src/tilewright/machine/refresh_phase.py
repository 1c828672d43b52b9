"""Where in the refresh interval of its HBM a machine starts."""

from dataclasses import replace

from tilewright.machine.build import Machine
from tilewright.machine.spec import MachineSpec, RefreshSpec


def refresh_of(spec: MachineSpec) -> RefreshSpec | None:
    """Return how the HBM of a machine refreshes; None if nothing in the machine does.

    A user's block has its own behaviour, which ``phase_ps`` does not reach.
    """
    hbm = spec.cube.hbm
    if hbm.impl is not None or hbm.model == "simple" or hbm.refresh.kind == "none":
        return None
    return hbm.refresh


def phase_shift_ps(spec: MachineSpec, index: int, count: int) -> int:
    """Return how much later refreshes are at one of ``count`` phases; 0 if nothing refreshes.

    Slices of a cube refresh ``interval / pes`` after each other, so a multiple of that only lets
    them change places, which a run over all slices does not notice. The phases are therefore
    spread evenly over the interval and over this distance too. Those of 2 ``count`` contain these.

    >>> from tilewright.machine.parse import parse_machine
    >>> [phase_shift_ps(parse_machine("ahbm"), index, 4) for index in range(4)]
    [0, 1096875, 2193750, 3290625]
    """
    refresh = refresh_of(spec)
    if refresh is None:
        return 0
    slices = spec.cube.pes
    return index * refresh.interval_ps * (slices + 1) // (count * slices) % refresh.interval_ps


def shift_refresh(machine: Machine, shift_ps: int) -> Machine:
    """Return the machine with all its refreshes ``shift_ps`` later, modulo one interval.

    Nodes, links and routes are shared with ``machine``: none of them depends on refresh.
    """
    refresh = refresh_of(machine.spec)
    if refresh is None or not shift_ps:
        return machine
    phase_ps = (refresh.phase_ps + shift_ps) % refresh.interval_ps
    moved = refresh.model_copy(update={"phase_ps": phase_ps})
    hbm = machine.spec.cube.hbm.model_copy(update={"refresh": moved})
    cube = machine.spec.cube.model_copy(update={"hbm": hbm})
    return replace(machine, spec=machine.spec.model_copy(update={"cube": cube}))
