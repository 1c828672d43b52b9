"""Kernels out of text, without triton."""

import subprocess
import sys
from dataclasses import replace

from tests.attention.machine.pair import graph_of
from tilewright.attention.backends.machine import kernels_for, load_kernels
from tilewright.attention.codegen import Target, compile_graph

LIGHT = """
import sys
sys.modules["triton"] = None
sys.modules["torch"] = None
import tests.attention.machine.pair as pair
from tilewright.attention.planner import Reserved
pair.run_pair(pair.graph_of("quest"), (9,), pair.plan_of(3)).check()
"""


def test_kernels_have_the_lines_of_their_text() -> None:
    file = compile_graph(graph_of("quest"), None, Target(rows=1, pages=4))
    loaded = load_kernels(file)
    lines = file.text.splitlines()
    for name, function in loaded.functions.items():
        code = function.__code__
        assert code.co_filename == loaded.path
        assert lines[code.co_firstlineno - 1 : code.co_firstlineno + 1][-1].startswith(
            f"def {name}("
        )


def test_other_text_has_another_path() -> None:
    file = compile_graph(graph_of("quest"), None, Target(rows=1, pages=4))
    other = replace(file, text=file.text + "\n# another line\n")
    assert load_kernels(file).path != load_kernels(other).path


def test_a_flow_that_is_traced_anew_has_the_kernels_it_had() -> None:
    target = Target(rows=1, pages=4)
    for is_dense in (False, True):
        first = kernels_for(graph_of("quest"), target, is_dense=is_dense)
        assert kernels_for(graph_of("quest"), target, is_dense=is_dense) is first
    assert kernels_for(graph_of("quest"), replace(target, pages=5)) is not first


def test_a_flow_runs_where_neither_triton_nor_torch_is_installed() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
