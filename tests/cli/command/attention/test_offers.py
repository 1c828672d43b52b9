"""Options and values of ``attention`` and ``generate`` that would do nothing, or wrong things."""

import json
from pathlib import Path

import pytest

from tilewright.cli.main import main

RUN = ("attention", "run", "--context", "60", "--batch", "1", "--budget", "4", "--head-dim", "16")
MACHINE = (*RUN, "--backend", "machine", "--machine", "ahbm-small")
COMPILE = ("attention", "compile", "quest")
COMPARE = ("attention", "compare", "--source", "synthetic", "--flows", "quest", "--budgets", "4")
DENSE = ("generate", "--prompt", "hi", "--flow", "dense")
LATENTS = ("attention", "run", "--context", "60", "--flow", "quest_mla")
APPROXIMATE = """
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import GeMM, Mean, approxTopK
from vortex_torch.cache import Mean as CMean

@register("approximate")
class Approximate(vFlow):
    def create_cache(self, block_size, head_dim):
        return {"c": (1, head_dim)}
    def forward_cache(self, cache, loc, ctx):
        CMean(dim=1)(cache["k"], cache["c"], loc=loc, ctx=ctx)
    def forward_indexer(self, q, o, cache, ctx):
        score = GeMM()(Mean(dim=1)(q, ctx=ctx), cache["c"], ctx=ctx)
        approxTopK(RATIO)(score, o, ctx=ctx)
"""
WITHOUT_EFFECT = "tolerate_ratio=0.5 is without effect: ApproxTopK selects exactly"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*RUN, "--dtype", "int32"), "Invalid value for '--dtype': 'int32'"),
        ((*RUN, "--dtype", "bool"), "Invalid value for '--dtype': 'bool'"),
        ((*RUN, "--flow", "quest", "--name", "other"), "the name 'other' beside it"),
        ((*LATENTS, "--kv-heads", "2"), "--kv-heads 2 for an MLA flow"),
        ((*LATENTS, "--head-dim", "64"), "more than the 64 channels that carry positions"),
        ((*MACHINE, "--sanitize", "--no-data"), "--sanitize without values"),
        ((*MACHINE, "--machine", "ahbm", "--save-selection", "a.json"), "several machines"),
        ((*COMPILE, "--pages", "5"), "found     --pages\n"),
        ((*COMPILE, "--deal", "dealt"), "found     --deal\n"),
        ((*COMPILE, "--emit", "machine", "--part-pages", "5"), "--part-pages 5"),
        ((*COMPILE, "--emit", "machine", "--queues"), "--queues and one member"),
        ((*COMPILE, "--name", "other"), "the name 'other' beside it"),
        (("attention", "show", "quest", "--name", "other"), "the name 'other' beside it"),
        ((*COMPARE, "--dense-layers", "50"), "50 dense layers"),
        ((*DENSE, "--dense-layers", "3"), "--dense-layers 3 with --flow dense"),
        ((*DENSE, "--name", "x"), "--name x with --flow dense"),
        (("generate", "--prompt", "hi", "--seed", "5"), "--seed 5 at --temperature 0"),
    ],
)
def test_what_would_do_nothing_is_refused_by_name(
    arguments: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # where files may be written, whoever runs the tests
    assert main([*arguments]) == 2
    errors = capsys.readouterr().err
    assert words in errors
    assert "to do" in errors


@pytest.mark.parametrize("dtype", ["float8_e4m3", "float8_e5m2"])
def test_a_machine_keeps_keys_and_values_in_one_byte(
    dtype: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*MACHINE, "--dtype", dtype, "--phases", "1", "--json"]) == 0
    narrow = json.loads(capsys.readouterr().out)
    assert main([*MACHINE, "--dtype", "float16", "--phases", "1", "--json"]) == 0
    wide = json.loads(capsys.readouterr().out)
    assert narrow["values_ok"] is True
    assert narrow["dense"]["ideal_bytes"] < 0.6 * wide["dense"]["ideal_bytes"]


@pytest.mark.parametrize(("dtype", "most"), [("int8", 0.02), ("int4", 0.2)])
def test_codes_with_scales_keep_the_output(
    dtype: str, most: float, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("attention", "run", "--context", "500", "--batch", "1", "--budget", "99")
    assert main([*command, "--dtype", dtype, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output_error_mean"] < most


@pytest.mark.parametrize(
    "backend", [(), ("--backend", "machine", "--machine", "ahbm-small", "--phases", "1")]
)
def test_an_approximate_selection_is_exact_and_says_that_its_ratio_does_nothing(
    backend: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = {}
    for ratio in ("0.0", "0.5"):
        file = tmp_path / f"approximate{ratio[-1]}.py"
        file.write_text(APPROXIMATE.replace("RATIO", ratio))
        assert main([*RUN, *backend, "--flow", str(file), "--json"]) == 0
        documents[ratio] = json.loads(capsys.readouterr().out)
    exact, loose = documents["0.0"], documents["0.5"]
    assert exact.pop("notes") == []
    (note,) = loose.pop("notes")
    assert WITHOUT_EFFECT in note
    assert exact.pop("graph_hash") != loose.pop("graph_hash")
    if not backend:
        assert exact == loose
    else:
        assert exact["sparse"]["latency_ps"] == loose["sparse"]["latency_ps"]
        assert exact["sparse"]["pages_read"] == loose["sparse"]["pages_read"]


def test_a_check_says_that_a_ratio_does_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "approximate.py"
    file.write_text(APPROXIMATE.replace("RATIO", "0.5"))
    assert main(["attention", "check", str(file), "--json"]) == 0
    (flow,) = json.loads(capsys.readouterr().out)["flows"]
    assert [warning["code"] for warning in flow["warnings"]] == ["exact-selection"]
