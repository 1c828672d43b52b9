"""Ready programs on machines that are too small for their defaults: smaller ones, and told."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from tilewright.errors import OutOfMemoryError, TileRoomError
from tilewright.host.worker import parse_device
from tilewright.programs.parameter import NO_FIT, Offer, double, halve
from tilewright.studies.run.execute import RunRequest

Result = TypeVar("Result")
RoomError = TileRoomError | OutOfMemoryError


def run_fitted(
    request: RunRequest, run: Callable[[RunRequest], Result]
) -> tuple[RunRequest, Result]:
    """Run a request, with smaller defaults while the machine has no room for them.

    Returns what was run in the end. What fails with the smallest defaults, or with values that the
    user gave, is raised.
    """
    asked = request
    request = _with_counts(request)
    while True:
        try:
            return request, run(request)
        except (TileRoomError, OutOfMemoryError) as error:
            smaller = _smaller(request, error)
            if smaller is None:
                changed = _changed_defaults(asked.parameters, request.parameters)
                raise _told(error, changed) if changed else error from None
            request = _with_counts(smaller)


def fit_note(defaults: Mapping[str, Any], used: Mapping[str, Any]) -> str | None:
    """Return one line about defaults that were changed; None if all stayed.

    >>> fit_note({"cubes": 4, "pes": 0}, {"cubes": 1, "pes": 0})
    'to fit this machine: cubes=1 (default 4)'
    """
    changed = _changed_defaults(defaults, used)
    return f"to fit this machine: {changed}" if changed else None


def _changed_defaults(defaults: Mapping[str, Any], used: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={used[name]} (default {value})"
        for name, value in defaults.items()
        if used[name] != value
    )


def _with_counts(request: RunRequest) -> RunRequest:
    """Return the request with as many parts as the machine has, where the user said nothing."""
    fit = request.source.fit
    if fit is NO_FIT or not request.free:
        return request
    grid = request.machine.grid
    offer = Offer(
        len(parse_device(request.device, grid.num_sips).sips),
        grid.num_cubes_per_sip,
        grid.num_pes_per_cube,
        request.machine.spec,
    )
    found = fit.counts(offer, request.parameters)
    return _changed(request, {name: value for name, value in found.items() if name in request.free})


def _smaller(request: RunRequest, error: RoomError) -> RunRequest | None:
    """Return the request with less of what had no room; None if nothing is left to change."""
    fit, values = request.source.fit, request.parameters
    if not isinstance(error, TileRoomError):
        smaller = halve(values, fit.sizes, request.free) or double(values, fit.parts, request.free)
    else:
        smaller = {
            name: value
            for name, value in fit.instead.items()
            if name in request.free and values[name] != value
        } or halve(values, fit.tiles, request.free)
    return _changed(request, smaller) if smaller else None


def _changed(request: RunRequest, values: Mapping[str, Any]) -> RunRequest:
    return replace(request, parameters={**request.parameters, **values})


def _told(error: RoomError, changed: str) -> RoomError:
    """Add what was tried: the error is about values that nobody has written."""
    error.found = f"{error.found}; tried down to {changed}"
    return error
