"""``tilewright attention compile``."""

import json

import pytest

from tests.attention.codegen.test_compile import compiled, graph_of
from tilewright.attention.codegen import Deal, Merge, Target, Tiling, compile_graph
from tilewright.cli.main import main

MEMBERS = ["--emit", "machine", "--members", "8", "--deal", "dealt", "--queues"]


def test_the_command_prints_the_file_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", "compile", "quest", "--emit", "triton", "--page-tile", "4"]) == 0
    assert capsys.readouterr().out == compiled("quest", Tiling(page_tile=4)).text


def test_the_command_compiles_for_members_with_queues(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", "compile", "quest", *MEMBERS, "--pages", "512"]) == 0
    merges = frozenset({Merge.MEMORY, Merge.IPCQ})
    target = Target(rows=1, pages=512, members=8, deal=Deal.DEALT, merges=merges)
    assert capsys.readouterr().out == compile_graph(graph_of("quest"), None, target).text


def test_the_document_has_what_a_launcher_must_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", "compile", "quest", "--emit", "machine", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "attention_compile"
    (kernel,) = found["step"]
    assert (kernel["name"], kernel["grid"]) == ("decode_row", "rows, members")
    assert kernel["stages"] == ["scoring", "selection", "attention"]
    accepted = {item["fusion"]: item["accepted"] for item in found["decisions"]}
    assert list(accepted.values()) == [True, False, False, True, True, True]
    assert not accepted["selection in two levels"]  # how many pages are chosen is not known
    assert {item["name"] for item in found["results"]} >= {"output", "page_list"}
    assert kernel["traffic"][0]["page_bytes"] == 2 * 128 * 2 + 8
    assert found["text"].startswith('"""Kernels of the flow quest')


def test_members_for_a_gpu_are_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", "compile", "quest", "--members", "8"]) == 2
    assert "--emit machine with them" in capsys.readouterr().err


def test_a_deal_without_members_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["attention", "compile", "quest", "--emit", "machine", "--deal", "dealt"]
    assert main(arguments) == 2
    assert "1 members and pages dealt" in capsys.readouterr().err
