"""``tilewright attention check`` and ``show``: verdicts, warnings, graphs, exit status."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.attention.graph.parse import parse_graph
from tilewright.attention.ops import OPS
from tilewright.cli.main import main
from tilewright.records.attention.flow import AttentionCheckRecord

Run = Callable[..., tuple[int, str, str]]

GOOD = """
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import GeMM, Mean, topK
from vortex_torch.cache import Mean as CMean

@register("good")
class Good(vFlow):
    def __init__(self):
        self.cmean, self.mean, self.gemm, self.out = CMean(dim=1), Mean(dim=1), GeMM(), topK()
    def create_cache(self, block_size, head_dim):
        return {"centroids": (1, head_dim)}
    def forward_cache(self, cache, loc, ctx):
        self.cmean(cache["k"], cache["centroids"], loc=loc, ctx=ctx)
    def forward_indexer(self, q, o, cache, ctx):
        score = self.gemm(self.mean(q, ctx=ctx), cache["centroids"], ctx=ctx)
        self.out(score, o, ctx=ctx)
"""
DOUBTFUL = GOOD.replace("self.out(score, o", "score.exp(); self.out(score, o")
WRONG = GOOD.replace('"good"', '"wrong"').replace("self.mean(q, ctx=ctx)", "q")
NEVER_ENDS = GOOD.replace('"good"', '"endless"').replace("self.out(score, o, ctx=ctx)", "pass")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_and_capture(*arguments: str) -> tuple[int, str, str]:
        status = main(["attention", *arguments])
        output, errors = capsys.readouterr()
        return status, output, errors

    return run_and_capture


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "flow.py"
    file.write_text(text)
    return str(file)


def test_a_good_file_is_right_and_ends_with_0(run: Run, tmp_path: Path) -> None:
    status, output, errors = run("check", written(tmp_path, GOOD))
    assert (status, output, errors) == (0, "good (gqa): right\n", "")


def test_a_warning_has_its_line_and_does_not_fail(run: Run, tmp_path: Path) -> None:
    status, output, _ = run("check", written(tmp_path, DOUBTFUL))
    assert status == 0
    assert "warning: flow.py:16: the result of Exp is not used [unused-value]" in output


def test_a_wrong_flow_ends_with_1_and_is_told_in_parts(run: Run, tmp_path: Path) -> None:
    file = written(tmp_path, GOOD + WRONG + NEVER_ENDS)
    status, output, errors = run("check", file, "--json")
    document: dict[str, Any] = json.loads(output)
    assert (status, errors) == (1, "")
    assert document["ok"] is False
    assert [(row["name"], row["kind"], row["ok"]) for row in document["flows"]] == [
        ("good", "gqa", True),
        ("wrong", "gqa", False),
        ("endless", "gqa", False),
    ]
    (error,) = document["flows"][1]["errors"]
    assert (error["type"], error["op"], error["operand"]) == ("OperandError", "TopK", "scores")
    assert error["method"] == "forward_indexer"
    assert error["line"] == "flow.py:32"
    assert document["flows"][2]["errors"][0]["type"] == "TerminalError"
    AttentionCheckRecord.model_validate_json(output)


def test_a_good_document_has_hash_state_and_bytes(run: Run, tmp_path: Path) -> None:
    _, output, _ = run("check", written(tmp_path, GOOD), "--json")
    (row,) = json.loads(output)["flows"]
    assert len(row["graph_hash"]) == 64
    assert row["states"] == []
    assert row["bytes_per_page"] == (2 * 16 * 128 + 128) * 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import nothing_at_all", "an import that fails"),
        ("1 / 0", "ZeroDivisionError"),
        ("x = 1", "no registered flow"),
        (GOOD + GOOD, "one owner for a name"),
    ],
)
def test_a_file_that_cannot_be_loaded_ends_with_2(
    run: Run, tmp_path: Path, text: str, found: str
) -> None:
    status, output, errors = run("check", written(tmp_path, text))
    assert (status, output) == (2, "")
    assert found in errors


def test_what_a_file_prints_does_not_spoil_the_document(run: Run, tmp_path: Path) -> None:
    status, output, errors = run("check", written(tmp_path, "print('hello')\n" + GOOD), "--json")
    assert status == 0
    assert json.loads(output)["ok"] is True
    assert "hello" in errors


def test_sizes_of_the_model_can_be_said(run: Run, tmp_path: Path) -> None:
    file = written(tmp_path, GOOD)
    sizes = ("--page-size", "8", "--head-dim", "32", "--group", "2", "--json")
    (row,) = json.loads(run("check", file, *sizes)[1])["flows"]
    assert row["bytes_per_page"] == (2 * 8 * 32 + 32) * 2
    assert "query_heads=2 key_dim=32" in run("show", file, *sizes[:-1])[1]


def test_sizes_that_a_flow_cannot_take_are_its_error(run: Run, tmp_path: Path) -> None:
    picky = GOOD.replace("CMean(dim=1)", "__import__('vortex_torch').cache.MeanInterleave(1, 32)")
    status, output, _ = run("check", written(tmp_path, picky))
    assert status == 1
    assert "axis 1 in whole groups of k=32" in output


def test_a_shown_graph_reads_back(run: Run) -> None:
    status, output, errors = run("show", "quest")
    assert (status, errors) == (0, "")
    assert parse_graph(output, OPS).name == "quest"


def test_an_optimized_graph_is_another_one(run: Run) -> None:
    documents = [
        json.loads(run("show", "quest", "--json", *more)[1]) for more in ((), ("--optimized",))
    ]
    assert documents[0]["graph_hash"] != documents[1]["graph_hash"]
    assert "GeMM" not in documents[0]["text"]
    assert documents[1]["text"].count("GeMM") == 2


def test_a_graph_is_drawn_into_a_file(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "quest.svg"
    status, output, _ = run("show", "quest", "--svg", str(target), "--json")
    assert status == 0
    assert json.loads(output)["svg"] == str(target)
    assert target.read_text().startswith("<svg")


def test_one_flow_of_several_is_shown_by_name(run: Run, tmp_path: Path) -> None:
    file = written(tmp_path, GOOD + GOOD.replace('"good"', '"second"'))
    status, _, errors = run("show", file)
    assert status == 2
    assert "flows good, second" in errors
    assert run("show", file, "--name", "second")[1].startswith('graph "second"')


def test_an_unknown_name_ends_with_2_and_the_nearest(run: Run) -> None:
    status, _, errors = run("show", "qest")
    assert status == 2
    assert "did you mean 'quest'?" in errors
