"""Vortex-style flow files that are wrong: each is refused with its line and what to write."""

from pathlib import Path

import pytest

from tilewright.attention.verify import check_flows
from tilewright.errors import FlowLoadError
from tilewright.interop.vortex import load_flows

HEAD = """
import torch
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import *
from vortex_torch.cache import Fill as CFill, Mean as CMean

class Base(vFlow):
    def __init__(self):
        super().__init__()
        self.c, self.mean, self.gemm, self.out = CMean(dim=1), Mean(dim=1), GeMM(), topK()
        self.softmax = Softmax(dim=0)
        self.make()
    def make(self): pass
    def create_cache(self, block_size, head_dim):
        return {"centroids": (1, head_dim), "state": (1, 1)}
    def forward_cache(self, cache, loc, ctx):
        self.c(cache["k"], cache["centroids"], loc=loc, ctx=ctx)
        CFill(0.0)(cache["state"], loc=loc, ctx=ctx)
    def forward_indexer(self, q, o, cache, ctx):
        score = self.gemm(self.mean(q, ctx=ctx), cache["centroids"], ctx=ctx)
        Save()(Load()(cache["state"], ctx=ctx), cache["state"], ctx=ctx)
        self.use(q, score, cache, ctx)
        self.out(score, o, ctx=ctx)
    def use(self, q, score, cache, ctx): pass

@register("wrong")
class Wrong(Base):
"""
FIRST = HEAD.count("\n") + 1  # line of the body's first line

USE = "    def use(self, q, score, cache, ctx): "
MAKE = "    def make(self): "
REQUEST = "    def create_request_cache(self, block_size, head_dim): return "
FIELDS = "    def create_cache(self, block_size, head_dim): return "

WRONG = {
    MAKE + "Save(1, 2)": ("too many positional arguments", "leave out"),
    MAKE + 'Load("x")': ("too many positional arguments", "leave out"),
    MAKE + "Multiply(3)": ("alpha=3", "Add_Mul"),
    MAKE + 'Softmax(scale="big")': ("scale='big'", "change scale"),
    MAKE + "self.softmax.scal = 0.5": ("the attribute 'scal'", "did you mean 'scale'?"),
    MAKE + 'self.softmax.scale = "big"': ("scale='big'", "change scale"),
    USE + "self.softmax.scale = q": ("scale=", "change scale"),
    USE + "self.softmax.span_ = 1": ("the attribute 'span_'", "did you mean 'span'?"),
    MAKE + "Softmax(1)": ("dim=1", "write x.softmax(1)"),
    MAKE + "Softmax(dim=2, scale=0.5)": ("dim=2", "write x.softmax(2)"),
    MAKE + "self.softmax.dim = 1": ("dim=1", "write x.softmax(1)"),
    USE + "Softmax()(q, ctx=ctx)": ("BATCHED", "reduce something per page first"),
    USE + "topK()(score, score=score, ctx=ctx)": ("['scores']", "leave the others out"),
    USE + "topK()(score=score, scores=score, ctx=ctx)": ("['score']", "leave the others out"),
    USE + "topK()(scor=score, ctx=ctx)": ("['scor']", "leave the others out"),
    USE + "self.softmax(cache['centroids'], ctx=ctx)": ("PAGED", "lift the field with Load()"),
    USE + "q.mean(dim=1, keepdim=False)": ("keepdim=False", "docs/ops.md"),
    USE + "q.unsqueeze(1)": ("'unsqueeze'", "docs/ops.md"),
    USE + "ctx.op_list.append(self.softmax)": ("a write to it", "a call enters the graph"),
    USE + "GTGroupScore()(q, 3, ctx=ctx)": ("operand k of type int", 'cache["k"]'),
    USE + "Save()(score, cache['slot'], ctx=ctx)": ("field 'slot'", "declare it in create_cache"),
}
WRONG_FIELDS = {
    FIELDS + '{"centroids": ((1, head_dim), "floaty"), "state": (1, 1)}': (
        "the element type 'floaty'",
        "write one of these",
    ),
    FIELDS + '{"centroids": ((1, head_dim, 2), torch.bfloat16)}': (
        "(1, 128, 2)",
        "return (rows, columns), or ((rows, columns), dtype)",
    ),
    REQUEST + '{"state": (1, 1)}': ("'state', which create_cache declares too", "rename one"),
    REQUEST + '{"k": (1, 1)}': ("a field 'k'", "keys and values are there already"),
    REQUEST + "3": ("a int", "or {} for no fields"),
    REQUEST + '{"slot": (1, 1)}\n' + USE + "Load()(cache['slot'], ctx=ctx)": (
        "a read, and no Save",
        "Save it, or drop it",
    ),
    REQUEST + '{"slot": (1, 1)}\n' + USE + "Save()(score, cache['slot'], ctx=ctx)": (
        "RAGGED",
        "reduce over pages (dim=0) first",
    ),
    REQUEST
    + '{"slot": (1, 1)}\n'
    + "    def forward_cache(self, cache, loc, ctx): CFill()(cache['slot'], loc=loc, ctx=ctx)": (
        "a use in forward_cache",
        "Load and Save it there",
    ),
}


@pytest.mark.parametrize("body", WRONG)
def test_a_wrong_line_is_refused_with_its_number_and_what_to_write(
    body: str, tmp_path: Path
) -> None:
    problem = problem_of(tmp_path, body)
    found, fix = WRONG[body]
    assert found in problem.found
    assert fix in problem.fix
    assert f"flow.py:{FIRST}" in problem.where


@pytest.mark.parametrize("body", WRONG_FIELDS)
def test_a_wrong_declaration_is_refused_with_what_to_write(body: str, tmp_path: Path) -> None:
    problem = problem_of(tmp_path, body)
    found, fix = WRONG_FIELDS[body]
    assert found in problem.found
    assert fix in problem.fix
    assert problem.where.startswith("flow 'wrong', ")


def problem_of(tmp_path: Path, body: str):  # type: ignore[no-untyped-def]  # a row's problem
    file = tmp_path / "flow.py"
    file.write_text(HEAD + body + "\n")
    (row,) = check_flows(load_flows(file))
    (problem,) = row.errors
    return problem


def test_the_same_file_without_a_wrong_line_is_right(tmp_path: Path) -> None:
    file = tmp_path / "flow.py"
    file.write_text(HEAD + "    pass\n")
    (row,) = check_flows(load_flows(file))
    assert (row.ok, row.warnings) == (True, ())


def test_a_relative_import_that_leads_nowhere_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine" / "flow.py"
    file.parent.mkdir()
    file.write_text("\nfrom .absent import Base\n")
    with pytest.raises(FlowLoadError, match=r"flow.py:2: found an import that fails.*absent"):
        load_flows(file)
