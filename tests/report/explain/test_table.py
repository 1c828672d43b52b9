"""The text of ``explain``: use, advice, what was measured."""

from typing import Any

from tilewright.records.explain import Advice, ExplainRecord, PartShare, Remark
from tilewright.records.run.part import ChannelUse, ResourceUse
from tilewright.report.explain.table import explain_view

GEMM = ResourceUse(
    field="pe.gemm.hz", num_used=8, busiest="sip0.cube0.pe0.gemm", busy_ps=640, greatest=0.64,
    median=0.5, mean=0.5,
)  # fmt: skip
ADVICE = Advice(
    option="--set pe.gemm.hz=2000000000", field="pe.gemm.hz", least_ps=600, bound=0.4, worth=0.2,
    reason="it sets 400 ps (40 %) of the critical path",
)  # fmt: skip


def text_of(**fields: Any) -> str:
    record = ExplainRecord(
        source="run.json", program="matmul", machine="ahbm", latency_ps=1000,
        **{
            "mean_ps": 1000.0, "bound_ps": None, "remarks": (Remark(topic="x", text="Hear this."),),
            "parts": (PartShare(part="gemm", time_ps=1000, share=1.0),), **fields,
        },
    )  # fmt: skip
    return explain_view(record).plain + "\n"


def test_the_latency_is_told_beside_its_mean_over_phases() -> None:
    assert text_of().startswith("matmul on ahbm: 1 ns\n")
    assert text_of(mean_ps=1500.0).startswith(
        "matmul on ahbm: 1 ns at refresh phase 0, 1.5 ns on average\n"
    )
    assert "- Hear this.\n" in text_of()


def test_use_names_the_busiest_and_the_median_of_each_kind() -> None:
    idle = GEMM.model_copy(update={"field": "pe.vector.hz", "greatest": 0.001})
    text = text_of(resources=(GEMM, idle))
    assert "     64 %    50 %      8  GEMM units; busiest: sip0.cube0.pe0.gemm\n" in text
    assert "vector" not in text
    assert "use, as a share" not in text_of(resources=(idle,))


def test_channels_and_banks_of_the_busiest_slice_are_told() -> None:
    use = ChannelUse(
        memory="sip0.cube0.hbm_ctrl.pe0", shares=(0.5, 0.25), row_hits=3, row_misses=1,
        banks=(1, 0, 4), row_cycle_ps=45,
    )  # fmt: skip
    text = text_of(resources=(GEMM,), channels=use)
    assert "  pseudo-channels of sip0.cube0.hbm_ctrl.pe0: 50 25 %\n" in text
    assert "    75 % of 4 bursts hit open rows\n" in text
    assert "opened 0 to 4 rows; row cycles of the busiest bank take 18 %\n" in text
    simple = use.model_copy(update={"banks": ()})
    assert "banks" not in text_of(resources=(GEMM,), channels=simple)


def test_advice_has_its_estimate_its_bound_and_what_was_measured() -> None:
    line = "  --set pe.gemm.hz=2000000000  about 20 %, at most 40 %"
    assert f"{line}\n    it sets 400 ps (40 %)" in text_of(advice=(ADVICE,))
    update = {"gain": 0.151, "gain_half_width": 0.004, "num_phases": 8, "mean_ps": 849.0}
    measured = ADVICE.model_copy(update=update)
    assert f"{line}, measured 15.1 ±0.4 %\n" in text_of(advice=(measured,))
    single = measured.model_copy(update={"gain": -0.02, "gain_half_width": None})
    assert f"{line}, measured -2.0 %\n" in text_of(advice=(single,))
    assert text_of(notes=("measured 0 of 1",)).endswith("\nmeasured 0 of 1\n")
