"""``tilewright machine list`` and ``attention list``: what ships, a line for each."""

import json

import pytest

from tilewright.attention.flow.registry import get
from tilewright.cli.main import main
from tilewright.machine import list_presets, load_machine
from tilewright.machine.presets import preset_summary
from tilewright.machine.totals import totals_of
from tilewright.records.attention.flow import AttentionListRecord
from tilewright.records.machine import MachineListRecord


def test_every_machine_has_a_line_with_its_figures_and_what_it_is_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["machine", "list"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == ["SIPs", "cubes", "PEs", "HBM", "HBM", "rate"]
    assert lines[0] == (
        "ahbm              2     32   256   1.5 TiB  65.536 TB/s  the default machine"
    )
    rows = lines[: len(list_presets())]
    assert [row.split()[0] for row in rows] == list(list_presets())
    assert all(row.endswith(preset_summary(row.split()[0])) for row in rows)
    assert lines[-1] == "all of one: tilewright machine show NAME"


def test_the_document_of_machines_has_all_totals(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machine", "list", "--json"]) == 0
    record = MachineListRecord.model_validate_json(capsys.readouterr().out)
    (six,) = (row for row in record.machines if row.name == "ahbm-6sip")
    totals = totals_of(load_machine("ahbm-6sip"))
    assert six.figures.num_pes == totals.num_pes == 768
    assert six.figures.hbm_bytes == totals.hbm_bytes
    assert six.summary.endswith("the machine of the all-reduce studies")


def test_every_ready_flow_has_a_line_under_its_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", "list", "--json"]) == 0
    document = capsys.readouterr().out
    record = AttentionListRecord.model_validate_json(document)
    assert json.loads(document)["flows"][0]["family"] == "gqa"
    assert {row.name for row in record.flows} >= {"quest", "quest_mla", "streaming_llm"}
    assert all(row.family == get(row.name).kind.value for row in record.flows)
    assert all(row.summary and "\n" not in row.summary for row in record.flows)
    assert main(["attention", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    latent = lines.index("Latent attention (MLA)")
    named = {line.split()[0]: at for at, line in enumerate(lines) if line.startswith("  ")}
    assert lines[0] == "Grouped-query attention"
    assert named["quest"] < latent < named["quest_mla"]
    assert len(named) == len(record.flows)
    assert lines[named["h2o"]].split(maxsplit=1)[1].startswith("worth_t(P) = ")
