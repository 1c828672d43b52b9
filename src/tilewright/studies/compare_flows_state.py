"""Trials that are complete, kept in a file so that a second run continues."""

from collections.abc import Iterable
from pathlib import Path

from tilewright.records import read_record, write_record
from tilewright.records.attention_compare import CompareState, TrialRecord

__all__ = ("KeptTrials",)


class KeptTrials:
    """The file is written after each trial, whole or not at all; without a path nothing is kept.

    A trial is found by the hash of all that it depends on: trials of other comparisons may stand
    in the same file, and none of them is taken by mistake.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._trials: dict[str, TrialRecord] = {}
        if path is not None and path.exists():
            state = read_record(path, CompareState)
            self._trials = {trial.key: trial for trial in state.trials}

    def found(self, keys: Iterable[str]) -> dict[str, TrialRecord]:
        return {key: self._trials[key] for key in keys if key in self._trials}

    def add(self, trial: TrialRecord) -> None:
        self._trials[trial.key] = trial
        if self._path is not None:
            write_record(self._path, CompareState(trials=tuple(self._trials.values())))
