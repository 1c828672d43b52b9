"""Trials and latencies that are complete, kept in a file so that a second run continues."""

from collections.abc import Iterable
from pathlib import Path

from tilewright.records import locked_target, read_record, write_record
from tilewright.records.attention.compare import CompareState, LatencyRecord, TrialRecord

WHAT = "state"


class KeptWork:
    """The file is written after each result, whole or not at all; without a path nothing is kept.

    A result is found by the hash of all that it depends on: those of other comparisons may stand
    in the same file, and none of them is taken by mistake. Several processes may share the file.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._trials: dict[str, TrialRecord] = {}
        self._latencies: dict[str, LatencyRecord] = {}
        if path is not None:
            with locked_target(path, WHAT):
                self._take_from(path)

    def found(self, keys: Iterable[str]) -> dict[str, TrialRecord]:
        return {key: self._trials[key] for key in keys if key in self._trials}

    def latency(self, key: str) -> LatencyRecord | None:
        return self._latencies.get(key)

    def add(self, result: TrialRecord | LatencyRecord) -> None:
        if isinstance(result, TrialRecord):
            self._trials[result.key] = result
        else:
            self._latencies[result.key] = result
        if self._path is not None:
            with locked_target(self._path, WHAT):
                self._take_from(self._path)
                trials, latencies = tuple(self._trials.values()), tuple(self._latencies.values())
                write_record(self._path, CompareState(trials=trials, latencies=latencies))

    def _take_from(self, path: Path) -> None:
        """Take over what the file has: another process may have written it meanwhile."""
        if path.exists():
            state = read_record(path, CompareState)
            self._trials = {trial.key: trial for trial in state.trials} | self._trials
            self._latencies = {each.key: each for each in state.latencies} | self._latencies
