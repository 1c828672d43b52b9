"""Records, states and selections that were changed: one message with the place, and status 2."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.record_input import COMPARED, SELECTED, base_records
from tilewright.cli.main import main

MEASURE = ("explain", "record.json", "--measure", "--seconds", "0")
EXPLAIN = ("explain", "record.json")
COMPARE = (*COMPARED[:-1], "--state", "record.json")
SELECT = (*SELECTED[:-1], "--no-data", "--selection", "record.json")
FIELDS = ("machine", "fields")
TRIAL = ("trials", 0)

DAMAGES = {
    "a field of the machine that is text": (
        "run", (*FIELDS, "cube.hbm.timing.clock_ps"), "x", EXPLAIN, "clock_ps is 'x'",
    ),
    "a field of the machine that is endless": (
        "run", (*FIELDS, "fabric.latency_ps"), 10**400, EXPLAIN, "no whole number of 63 bits",
    ),
    "a negative field of the machine": (
        "run", (*FIELDS, "pe.gemm.hz"), -1, EXPLAIN, "pe.gemm.hz is -1",
    ),
    "an engine that nobody has": (
        "run", ("versions", "engine"), "x", MEASURE, "the engine 'x'",
    ),
    "a parameter of another kind": (
        "run", ("parameters", "m"), "x", MEASURE, "m=x",
    ),
    "a parameter that the program does not have": (
        "run", ("parameters", "zz"), 1, MEASURE, "a parameter 'zz'",
    ),
    "more hits than cases": (
        "state", (*TRIAL, "needle_hits"), 9, COMPARE, "more needle_hits than needle_cases",
    ),
    "a mass above all of it": (
        "state", (*TRIAL, "mass", 0), 2.0, COMPARE, "trials.0.mass.0",
    ),
    "no steps": (
        "state", (*TRIAL, "mass"), [], COMPARE, "trials.0.mass",
    ),
    "losses of other tokens": (
        "state", (*TRIAL, "nll"), [1.0], COMPARE, "nll and dense_nll are of different tokens",
    ),
    "a page beyond all numbers": (
        "selection", ("pages", 0), [2**70], SELECT, "pages.0.0",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "place", "value", "command", "words"), DAMAGES.values(), ids=DAMAGES
)
def test_a_damaged_document_is_one_message(
    kind: str,
    place: tuple[Any, ...],
    value: object,
    command: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    document = copy.deepcopy(base_records()[kind][0])
    section = document
    for key in place[:-1]:
        section = section[key]
    section[place[-1]] = value
    Path("record.json").write_text(json.dumps(document))
    capsys.readouterr()
    assert main(list(command)) == 2
    message = capsys.readouterr().err
    assert words in message
    assert "Traceback" not in message
