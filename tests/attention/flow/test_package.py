"""Flow files inside packages, and what stays of them."""

import sys
from pathlib import Path

import pytest

from tilewright.attention.flow import load_flows
from tilewright.cli.main import main
from tilewright.errors import FlowLoadError

BASE = """
from tilewright.attention.flow import register, vFlow

class Base(vFlow):
    def create_cache(self, block_size, head_dim):
        return {"c": (1, head_dim)}
    def forward_cache(self, cache, loc, ctx):
        cache["c"] = cache["k"].mean(1)

@register("of_the_base")
class Whole(Base):
    def forward_indexer(self, q, o, cache, ctx):
        o.select((cache["c"] @ q.mean(1).T).topk())
"""
FLOW = """
from tilewright.attention.flow import register
from {dots}base import Base

@register("mine")
class Mine(Base):
    def forward_indexer(self, q, o, cache, ctx):
        o.select((cache["c"] @ q.mean(1).T).topk())
"""


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        file = root / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.mark.parametrize("marked", [True, False], ids=["with __init__", "without"])
def test_relative_imports_find_files_beside_and_above(tmp_path: Path, marked: bool) -> None:
    write(tmp_path, p__base=BASE, p__one=FLOW.format(dots="."), p__q__two=FLOW.format(dots=".."))
    if marked:
        (tmp_path / "p" / "__init__.py").write_text("from .base import Base\n")
        (tmp_path / "p" / "q" / "__init__.py").write_text("")
    before = set(sys.modules)
    for file in ("one.py", "q/two.py"):
        assert list(load_flows(tmp_path / "p" / file)) == ["mine"]
    assert set(sys.modules) == before


def test_a_package_that_imports_the_file_itself_registers_it_once(tmp_path: Path) -> None:
    write(tmp_path, p__base=BASE, p__one=FLOW.format(dots="."))
    (tmp_path / "p" / "__init__.py").write_text("from .one import Mine\n")
    assert list(load_flows(tmp_path / "p" / "one.py")) == ["mine"]


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    write(tmp_path, p__base=BASE, p__one=FLOW.format(dots="."))
    load_flows(tmp_path / "p" / "one.py")
    (tmp_path / "p" / "one.py").write_text(FLOW.format(dots=".").replace('"mine"', '"ours"'))
    assert list(load_flows(tmp_path / "p" / "one.py")) == ["ours"]
    assert not list(tmp_path.rglob("*.pyc"))


def test_a_mistake_in_a_neighbour_is_told_with_its_file(tmp_path: Path) -> None:
    write(tmp_path, p__base="def\n", p__one=FLOW.format(dots="."))
    with pytest.raises(FlowLoadError, match=r"base.py:1: found a syntax error"):
        load_flows(tmp_path / "p" / "one.py")


def test_commands_take_a_file_of_a_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, p__base=BASE, p__one=FLOW.format(dots="."))
    file = str(tmp_path / "p" / "one.py")
    assert main(["attention", "check", file]) == 0
    assert "mine (gqa): right" in capsys.readouterr().out
    assert main(["attention", "run", "--flow", file, "--context", "256", "--budget", "8"]) == 0
