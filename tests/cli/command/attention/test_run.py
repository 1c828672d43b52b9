"""``tilewright attention run``: its document, its view, and what it refuses."""

import json
from pathlib import Path

import pytest

from tilewright.cli.main import main

SMALL = ("--context", "640", "--batch", "2", "--steps", "2", "--head-dim", "32")

FLOW_FILE = """
from vortex_torch.flow import vFlow, register
from vortex_torch.indexer import GeMM, Mean, topK
from vortex_torch.cache import Mean as CMean


@register("from_a_file")
class FromAFile(vFlow):
    def __init__(self):
        super().__init__()
        self.mean, self.gemm, self.output, self.centroid = Mean(1), GeMM(), topK(), CMean(1)

    def create_cache(self, block_size, head_dim):
        return {"centroids": (1, head_dim)}

    def forward_cache(self, cache, loc, ctx):
        self.centroid(cache["k"], cache["centroids"], loc=loc, ctx=ctx)

    def forward_indexer(self, q, o, cache, ctx):
        score = self.gemm(self.mean(q, ctx=ctx), cache["centroids"], ctx=ctx)
        self.output(score, o, ctx=ctx)
"""


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["attention", "run", "--json", *arguments]) == 0
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_a_run_gives_pages_mass_error_needles_and_bytes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = run_json(
        capsys,
        "--flow",
        "block_sparse_attention",
        "--backend",
        "reference",
        "--budget",
        "12",
        *SMALL,
    )
    rows = 2 * 2 * 2  # requests, KV heads, steps
    assert found["rows"] == {"sparse": rows, "dense": {}, "nan_scores": 0}
    assert found["pages"] == {
        "in_rows": rows * 41,
        "scored": rows * 39,
        "selected": rows * 12,
        "read": rows * 12,
    }
    assert found["needles"] == {"planted": rows, "found": rows}
    num_bytes = found["num_bytes"]
    assert isinstance(num_bytes, dict)
    page_bytes = 2 * 16 * 32 * 4
    assert num_bytes["kv_read"] == rows * 12 * page_bytes
    assert num_bytes["dense_kv_read"] == rows * 41 * page_bytes
    mass = found["mass"]
    assert isinstance(mass, dict)
    assert 0.5 < mass["worst"] <= mass["mean"] <= 1.0


def test_equal_seeds_give_equal_figures_and_other_seeds_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, again, other = (
        run_json(capsys, "--seed", seed, "--budget", "8", *SMALL) for seed in ("1", "1", "2")
    )
    assert first == again
    assert first["mass"] != other["mass"]


def test_a_budget_for_all_pages_is_dense_and_without_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = run_json(capsys, "--budget", "1000", *SMALL)
    assert found["rows"] == {"sparse": 0, "dense": {"fits": 8}, "nan_scores": 0}
    error = found["output_error_worst"]
    assert isinstance(error, float)
    assert error < 1e-5
    assert found["mass"] == pytest.approx({"mean": 1.0, "worst": 1.0, "against_oracle": 1.0})


def test_the_best_pages_are_at_least_as_good_as_any_flows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    masses = {}
    for flow in ("oracle", "quest", "random", "streaming_llm"):
        mass = run_json(capsys, "--flow", flow, "--budget", "8", *SMALL)["mass"]
        assert isinstance(mass, dict)
        masses[flow] = mass["mean"]
    assert masses["oracle"] >= max(masses["quest"], masses["random"], masses["streaming_llm"])


def test_a_flow_file_written_for_vortex_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FLOW_FILE)
    found = run_json(capsys, "--flow", str(file), "--budget", "8", *SMALL)
    ready = run_json(capsys, "--flow", "block_sparse_attention", "--budget", "8", *SMALL)
    assert found["flow"] == "from_a_file"
    assert found["mass"] == ready["mass"]


@pytest.mark.parametrize("flow", ["quest_mla", "snapkv", "running_avg_block_sparse", "dsa"])
def test_flows_of_every_kind_run(flow: str, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ("--context", "100", "--batch", "1", "--steps", "2", "--budget", "4")
    found = run_json(capsys, "--flow", flow, *sizes)
    assert found["flow"] == flow


def test_people_get_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", "run", "--budget", "8", *SMALL]) == 0
    out = capsys.readouterr().out
    assert "mass captured" in out
    assert "needles found" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--budget", "0"), "at least the 2 reserved ones"),
        (("--budget", "1"), "at least the 2 reserved ones"),
        (("--flow", "no_such_flow"), "no_such_flow"),
        (("--flow", "nowhere.py"), "nowhere.py"),
        (("--backend", "gpu"), "gpu"),
        (("--context", "0"), "--context"),
    ],
)
def test_wrong_input_exits_2_and_says_what(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attention", "run", *SMALL[2:], *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.out + captured.err


@pytest.mark.parametrize(
    ("options", "rule"), [((), "vortex"), (("--state-advance", "every_block"), "every_block")]
)
@pytest.mark.parametrize("backend", ["reference", "machine"])
def test_a_record_says_by_which_rule_state_advanced(
    capsys: pytest.CaptureFixture[str], backend: str, options: tuple[str, ...], rule: str
) -> None:
    sizes = ("--context", "64", "--batch", "1", "--budget", "3", "--kv-heads", "1")
    more = ("--machine", "ahbm-small", "--no-data") if backend == "machine" else ("--steps", "1")
    flow = ("--flow", "running_avg_block_sparse", "--backend", backend)
    arguments = ["attention", "run", *flow, *sizes, *more, *options, "--json"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["sizes"]["state_advance"] == rule


@pytest.mark.parametrize("option", ["--group", "--head-dim", "--kv-heads", "--batch", "--context"])
def test_data_beyond_the_memory_of_this_computer_is_refused_at_once(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attention", "run", option, "9" * 20]) == 2
    message = capsys.readouterr().err
    assert "keys, values and queries of" in message
    assert "of this computer" in message
