"""The text of all ops under the simulator's language gives what it gives under Triton's."""

from typing import Any

import numpy as np
import pytest

from tests.attention.triton import pair, test_ops
from tests.attention.triton.pair import SMALL, Both, Rows
from tilewright.attention.backends.machine import load_kernels
from tilewright.attention.codegen import KernelFile, compile_graph
from tilewright.attention.planner import DefaultBudget
from tilewright.machine import build_machine, parse_machine
from tilewright.runtime.workspace import Workspace


def simulated(_task: str, file: KernelFile, arguments: dict[str, Any]) -> dict[str, Any]:
    """Stands in for the interpreter: the completion of pages on one PE of a simulated machine."""
    machine = build_machine(parse_machine("ahbm-small"))
    pes = list(machine.grid.pes())[:1]
    workspace = Workspace(machine)
    arrays = {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}
    placed = {
        name: workspace.place(value.view(np.int8) if value.dtype == np.bool_ else value, pes)
        for name, value in arrays.items()
    }
    heads, num_blocks = arguments["k_pool"].shape[:2]
    given = {**arguments, **placed, "num_blocks": num_blocks}
    assert file.completion is not None
    kernel = load_kernels(file).functions[file.completion.name]
    wanted = {name: given[name] for name in file.completion.arguments}
    workspace.launch(kernel, grid=(len(arguments["new_blocks"]), heads), pes=pes, **wanted)
    return {name: workspace.read(placed[name]) for name in placed if name.endswith("_pool")}


@pytest.mark.parametrize("index", range(len(test_ops.SIZES)))
def test_every_op_has_the_value_of_the_reference(
    index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair, "ask", simulated)
    graph = test_ops.probe_of(index)
    rows = Rows(tokens=(13,), budget=DefaultBudget(topk=1), kv_heads=2)
    both = Both(graph, rows, compile_graph(graph, SMALL))
    both.begin()
    for name, (expected, found) in both.completed().items():
        kernel, reference = (np.asarray(part, dtype=np.float64) for part in (found, expected))
        np.testing.assert_allclose(kernel, reference, rtol=2e-6, atol=1e-6, err_msg=name)
