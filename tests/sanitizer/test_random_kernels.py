"""What the sanitizer says of random kernels, against the rules of the language."""

import numpy as np
from hypothesis import given, settings

from tests.language.bed import Bed
from tests.sanitizer.random_kernel import (
    NUM_ELEMENTS,
    NUM_PROGRAMS,
    Command,
    build_kernel,
    commands,
    racing_lines,
)
from tilewright.device.ipcq import RingSpec
from tilewright.executor.neighbour import Neighbours
from tilewright.memory import Sanitizer
from tilewright.runtime.workspace import Workspace

ALL = range(NUM_PROGRAMS)


def found_lines(lines: list[Command]) -> set[frozenset[int]]:
    sanitizer = Sanitizer()
    bed = Bed(num_pes=NUM_PROGRAMS)
    workspace = Workspace(bed.workspace.machine, sanitizer=sanitizer)
    table = {bed.pes[me]: {f"to{peer}": bed.pes[peer] for peer in ALL if peer != me} for me in ALL}
    ring = Neighbours(table, RingSpec(slots=32, slot_bytes=64))
    x = workspace.place(np.zeros(NUM_ELEMENTS, np.float32), bed.pes)
    kernel = build_kernel(lines)
    workspace.launch(kernel, x, grid=(NUM_PROGRAMS,), pes=bed.pes, neighbours=ring)
    return {
        frozenset(int(line.split()[0].partition(":")[2]) for line in finding.lines)
        for finding in sanitizer.findings
    }


@settings(max_examples=40, deadline=None)
@given(commands())
def test_lines_that_are_told_race_and_if_any_do_some_are_told(lines: list[Command]) -> None:
    expected = racing_lines(lines)
    found = found_lines(lines)
    assert found <= expected
    assert bool(found) == bool(expected)
