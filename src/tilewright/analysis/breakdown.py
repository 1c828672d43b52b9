"""The breakdown of a run: launch after launch, back from the end of the measured window."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from tilewright.analysis.trace.critical_path import ProgramPath
from tilewright.records import RunParts
from tilewright.runtime.request import LaunchReport


def break_down_run(
    window: tuple[int, int],
    launches: Sequence[LaunchReport],
    paths: Mapping[int, ProgramPath],
    cut: Collection[int] = (),
) -> RunParts:
    """Parts that add up to the window; without a path, an execution is one part.

    From the end the chain goes to the launch that completed last, to its submission, to the launch
    that completed last before that. In between the host waited for its own transfers.
    """
    parts: dict[str, int] = {}
    start_ps, at_ps = window
    for launch in chain_of(window, launches):
        _add(parts, "host_transfer", at_ps - launch.completed_ps)
        for part, time_ps in _parts_of(launch, paths, cut).items():
            _add(parts, part, time_ps)
        at_ps = launch.submitted_ps
    _add(parts, "host_transfer", at_ps - start_ps)
    return RunParts(**parts)


def chain_of(window: tuple[int, int], launches: Sequence[LaunchReport]) -> Iterator[LaunchReport]:
    """Yield the launches that a run's latency is made of, the last one first.

    Each is the one that completed last before the launch behind it was submitted.
    """
    start_ps, at_ps = window
    for launch in sorted(launches, key=lambda each: (-each.completed_ps, each.submitted_ps)):
        if at_ps <= start_ps:
            return
        if launch.completed_ps <= at_ps and launch.submitted_ps < at_ps:
            yield launch
            at_ps = launch.submitted_ps


def lines_of_run(
    window: tuple[int, int],
    launches: Sequence[LaunchReport],
    lines_ps: Mapping[int, Mapping[str, int]],
) -> dict[str, int]:
    """Time on the critical path by what was said where, the longest first."""
    found: Counter[str] = Counter()
    for launch in chain_of(window, launches):
        if launch.last_owner is not None:
            found.update(lines_ps.get(launch.last_owner, {}))
    return dict(found.most_common())


def _parts_of(
    launch: LaunchReport, paths: Mapping[int, ProgramPath], cut: Collection[int]
) -> dict[str, int]:
    owner = launch.last_owner
    path = None if owner is None else paths.get(owner)
    if owner is None or path is None:
        return {
            "dispatch": launch.dispatch_ps,
            "execution": launch.execution_ps,
            "completion": launch.completion_ps,
        }
    parts = dict(path.parts_ps)
    start_ps = path.start_ps
    if owner in cut:
        start_ps = launch.first_start_ps
        _add(parts, "execution", path.start_ps - start_ps)
    _add(parts, "dispatch", start_ps - launch.submitted_ps)
    _add(parts, "completion", launch.completed_ps - path.end_ps)
    return parts


def _add(parts: dict[str, int], part: str, time_ps: int) -> None:
    parts[part] = parts.get(part, 0) + time_ps
