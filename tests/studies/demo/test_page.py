from tests.studies.demo_records import demo_record
from tilewright.machine.build import build_machine
from tilewright.machine.parse import parse_machine
from tilewright.report.decode_page.page import decode_page_text
from tilewright.studies.demo.page import page_of
from tilewright.studies.demo.summary import flow_label


def test_the_page_has_the_figures_of_the_record() -> None:
    record = demo_record()
    page = page_of(record, build_machine(parse_machine("ahbm-small")), ())
    assert page.contexts == record.sizes.contexts
    assert page.flows == tuple(flow_label(flow.flow) for flow in record.flows)
    for flow in record.flows:
        quality = page.quality[flow_label(flow.flow)]
        assert (quality.mass, quality.needles_found) == (
            flow.quality.mass,
            flow.quality.needles.found,
        )
        for step in flow.steps:
            shown = page.step(flow_label(flow.flow), step.context)
            found = step.attention
            assert (shown.latency_ps, shown.speedup) == (found.latency_ps, step.speedup)
            assert shown.num_bytes == found.bytes
            assert [stage.name for stage in shown.stages] == [stage.name for stage in found.stages]
            assert shown.bottleneck == "HBM 91 %"


def test_a_page_without_usages_leaves_that_section_out() -> None:
    page = page_of(demo_record(), build_machine(parse_machine("ahbm-small")), ())
    assert "The machine in use" not in decode_page_text(page)
