"""``tilewright attention compile``."""

from pathlib import Path

import pytest

from tests.attention.codegen.test_compile import compiled
from tilewright.attention.codegen import Tiling
from tilewright.cli.main import main


def test_the_command_prints_the_file_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", "compile", "quest", "--emit", "triton", "--page-tile", "4"]) == 0
    assert capsys.readouterr().out == compiled("quest", Tiling(page_tile=4)).text


GUESSING = """
from tilewright.attention.abs import BranchSpec
from tilewright.attention.flow import register, vFlow


@register("guessing")
class Guessing(vFlow):
    def create_cache(self, block_size, head_dim):
        return {"middle": (1, head_dim), "value": (1, head_dim)}

    def forward_cache(self, cache, loc, ctx):
        cache["middle"] = cache["k"].mean(1)
        cache["value"] = cache["v"].mean(1)

    def forward_indexer(self, q, o, cache, ctx):
        logits = cache["middle"] @ q.T
        o.combine([BranchSpec(logits=logits, values=cache["value"])])
"""


def test_a_flow_without_kernels_is_wrong_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "guessing.py").write_text(GUESSING)
    assert main(["attention", "compile", str(tmp_path / "guessing.py")]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "estimates alone" in output.err
