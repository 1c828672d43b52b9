"""Flow files of Vortex through every entry: names are there wherever the file imports them."""

import sys
from pathlib import Path
from typing import Any

import pytest

import tilewright.attention.flow as our_flow
from tilewright.attention.backends import reference
from tilewright.attention.flow import examine_flow, trace_flow
from tilewright.attention.flow.config import VortexConfig
from tilewright.attention.graph import Geometry, graph_text
from tilewright.errors import FlowError, FlowLoadError, RegistryError
from tilewright.interop.vortex import (
    build_vflow,
    check_engine_config,
    find_flow,
    load_flows,
    session_of_config,
    vortex_names,
)
from tilewright.models import find_shape

GEOMETRY = Geometry.gqa(page_size=4, head_dim=8, query_heads=2)
EARLY = """
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import GeMM, Mean, topK
from vortex_torch.cache import Mean as CMean

@register("mine")
class Mine(vFlow):
    def __init__(self):
        self.mean, self.gemm, self.end, self.centroid = Mean(dim=1), GeMM(), topK(), CMean(dim=1)
    def create_cache(self, block_size, head_dim):
        return {"c": (1, head_dim)}
    def forward_cache(self, cache, loc, ctx):
        self.centroid(cache["k"], cache["c"], loc=loc, ctx=ctx)
    def forward_indexer(self, q, o, cache, ctx):
        self.end(self.gemm(self.mean(q, ctx=ctx), cache["c"], ctx=ctx), o, ctx=ctx)
"""
LATE = """
from vortex_torch.flow import register, vFlow

@register("mine")
class Mine(vFlow):
    def __init__(self):
        from vortex_torch.indexer import GeMM, Mean, topK
        self.mean, self.gemm, self.end = Mean(dim=1), GeMM(), topK()
    def create_cache(self, block_size, head_dim):
        import vortex_torch.abs
        assert vortex_torch.abs.FORMAT.PAGED.value == 2
        return {"c": (1, head_dim)}
    def forward_cache(self, cache, loc, ctx):
        from vortex_torch.cache import Mean as CMean
        CMean(dim=1)(cache["k"], cache["c"], loc=loc, ctx=ctx)
    def forward_indexer(self, q, o, cache, ctx):
        import torch
        assert torch.bfloat16 is not None
        self.end(self.gemm(self.mean(q, ctx=ctx), cache["c"], ctx=ctx), o, ctx=ctx)
"""


def write(file: Path, text: str) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return str(file)


def program_of(flow: our_flow.FlowBase) -> str:
    """Return the text of a flow's graph without lines of its file."""
    text = graph_text(trace_flow(flow, GEOMETRY, name="mine"))
    return "\n".join(line.partition("  #")[0] for line in text.splitlines())


def test_an_import_inside_a_constructor_or_method_finds_the_names(tmp_path: Path) -> None:
    before = set(sys.modules)
    _, late = find_flow(write(tmp_path / "late.py", LATE))
    _, early = find_flow(write(tmp_path / "early.py", EARLY))
    assert program_of(late) == program_of(early)
    assert not any(name.startswith("vortex_torch") for name in set(sys.modules) - before)


RELATIVE = """
from vortex_torch.flow import register, vFlow
from .base import MARK, WIDTH

@register("mine")
class Mine(vFlow):
    def __init__(self):
        from .base import make_ops
        self.mean, self.gemm, self.end = make_ops()
    def create_cache(self, block_size, head_dim):
        return {"c": (WIDTH, head_dim)}
    def forward_cache(self, cache, loc, ctx):
        from .base import MARK as again
        from .inner import summary
        assert again is MARK  # the package is imported once
        summary()(cache["k"], cache["c"], loc=loc, ctx=ctx)
    def forward_indexer(self, q, o, cache, ctx):
        self.end(self.gemm(self.mean(q, ctx=ctx), cache["c"], ctx=ctx), o, ctx=ctx)
"""
BASE = """
MARK, WIDTH = object(), 1

def make_ops():
    from vortex_torch.indexer import GeMM, Mean, topK
    return Mean(dim=1), GeMM(), topK()
"""
INNER = """
from . import base

def summary():
    from ..lab.base import WIDTH
    from vortex_torch.cache import Mean
    assert WIDTH is base.WIDTH
    return Mean(dim=base.WIDTH)
"""


def test_a_relative_import_inside_a_method_finds_the_package(tmp_path: Path) -> None:
    write(tmp_path / "__init__.py", "")
    write(tmp_path / "lab" / "base.py", BASE)
    write(tmp_path / "lab" / "inner.py", INNER)
    write(tmp_path / "lab" / "__init__.py", "")
    file = write(tmp_path / "lab" / "flow.py", RELATIVE)
    before = set(sys.modules)
    _, made = find_flow(file)
    _, early = find_flow(write(tmp_path / "early.py", EARLY))
    assert program_of(made) == program_of(early)
    assert not {name for name in set(sys.modules) - before if "flow_package" in name}


def test_an_import_that_leads_nowhere_is_told_without_a_private_name(tmp_path: Path) -> None:
    write(tmp_path / "lab" / "base.py", BASE)
    late = RELATIVE.replace("from .inner import", "from .innr import")
    _, made = find_flow(write(tmp_path / "lab" / "flow.py", late))
    with pytest.raises(FlowError) as caught:
        examine_flow(made, GEOMETRY, name="mine")
    assert caught.value.where == "flow 'mine', forward_cache, flow.py:14"
    assert caught.value.found == "ModuleNotFoundError: No module named '.innr'"
    early = RELATIVE.replace("import MARK, WIDTH", "import WIDHT")
    with pytest.raises(FlowLoadError, match=r"cannot import name 'WIDHT' from '\.base'"):
        find_flow(write(tmp_path / "lab" / "early.py", early))


def test_an_unknown_name_of_vortex_is_refused_with_its_line_and_a_near_one(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.py", EARLY.replace("GeMM, Mean", "GeMM, Meen"))
    expected = (
        f"{file}:3: found no name 'Meen' in vortex_torch.indexer, expected a name that is known"
        " here; did you mean 'Mean' or 'recent'?"
    )
    with pytest.raises(FlowLoadError) as caught:
        load_flows(file)
    assert str(caught.value) == expected


SCORES = ["score, o", "score=score, o=o", "o=o, score=score", "x=score, o=o", "scores=score, o=o"]


@pytest.mark.parametrize("end", ["topK()", "approxTopK(0.0)"])
@pytest.mark.parametrize("arguments", SCORES)
def test_scores_of_a_selection_may_be_given_by_the_names_of_vortex(
    tmp_path: Path, arguments: str, end: str
) -> None:
    lines = f"score = self.gemm(self.mean(q, ctx=ctx), cache['c'], ctx=ctx)\n        {end}("
    call = 'self.end(self.gemm(self.mean(q, ctx=ctx), cache["c"], ctx=ctx), o'
    assert call in EARLY
    text = EARLY.replace("topK", "topK, approxTopK, TopK, Union", 1)
    _, named = find_flow(write(tmp_path / "a.py", text.replace(call, lines + arguments)))
    _, usual = find_flow(write(tmp_path / "b.py", text.replace(call, lines + SCORES[0])))
    assert program_of(named) == program_of(usual)


def config_of(file: str) -> VortexConfig:
    return VortexConfig(module_path=file, module_name="mine", max_seq_lens=64)


@pytest.mark.parametrize("text", [EARLY, LATE], ids=["early", "late"])
def test_a_config_that_names_a_file_runs_it_without_further_ado(tmp_path: Path, text: str) -> None:
    config = config_of(write(tmp_path / "mine.py", text))
    assert build_vflow("mine", None, config.module_path).kind == "gqa"
    session = session_of_config(config, find_shape("smollm2-135m"))
    assert session.graph.name == "mine"
    checks = check_engine_config(config, num_layers=30)
    assert [check for check in checks if not check.ok] == []
    with vortex_names():  # the name that programs of Vortex call
        namespace: dict[str, Any] = {}
        exec("from vortex_torch.flow import build_vflow", namespace)
    assert namespace["build_vflow"]("mine", user_file=config.module_path).kind == "gqa"


def test_without_the_names_an_error_says_where_they_are(tmp_path: Path) -> None:
    config = config_of(write(tmp_path / "mine.py", EARLY))
    fix = "load it with find_flow, build_vflow or session_of_config of tilewright.interop.vortex"
    with pytest.raises(FlowLoadError) as caught:
        reference.session_of_config(config, find_shape("smollm2-135m"))
    assert caught.value.fix == fix
    assert caught.value.found == "an import that fails: No module named 'vortex_torch'"
    ours = EARLY.replace("vortex_torch", "tilewright.attention")
    late = ours.replace("self.end(self", "import vortex_torch.indexer\n        self.end(self")
    _, made = our_flow.find_flow(write(tmp_path / "late.py", late))
    with pytest.raises(FlowError) as later:
        examine_flow(made, GEOMETRY)
    assert later.value.fix == fix
    assert later.value.source == "late.py:15"


def test_a_real_vortex_in_the_process_is_refused_at_the_first_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vortex_torch", type(sys)("vortex_torch"))
    with pytest.raises(RegistryError, match="already imported"):
        find_flow(write(tmp_path / "mine.py", EARLY))
