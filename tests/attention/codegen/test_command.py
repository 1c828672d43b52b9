"""``tilewright attention compile``."""

import pytest

from tests.attention.codegen.test_compile import compiled
from tilewright.attention.codegen import Tiling
from tilewright.cli.main import main


def test_the_command_prints_the_file_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", "compile", "quest", "--emit", "triton", "--page-tile", "4"]) == 0
    assert capsys.readouterr().out == compiled("quest", Tiling(page_tile=4)).text


def test_a_flow_without_kernels_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", "compile", "nsa"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "3 branches" in output.err
