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
        assert page.quality[flow_label(flow.flow)] == flow.quality
        for step in flow.steps:
            assert page.step(flow_label(flow.flow), step.context).found == step
    assert "HBM 91 %" in decode_page_text(page)


def test_a_page_without_usages_leaves_that_section_out() -> None:
    page = page_of(demo_record(), build_machine(parse_machine("ahbm-small")), ())
    assert "The machine in use" not in decode_page_text(page)
