"""From the record of the demonstration to the page that shows it."""

from collections.abc import Sequence

from tilewright.machine.build import Machine
from tilewright.records.demo import DemoRecord
from tilewright.report.decode_page.model import DecodePage, ShownStep, ShownUsage
from tilewright.studies.demo.summary import NEXT, flow_label, meaning_of, quality_note, steps_note


def page_of(record: DemoRecord, machine: Machine, usages: Sequence[ShownUsage]) -> DecodePage:
    """All figures are those of the record; usages are too many for it."""
    return DecodePage(
        title=f"Which attention should decode on {record.machine}?",
        meaning=meaning_of(record),
        machine=machine,
        quality={flow_label(flow.flow): flow.quality for flow in record.flows},
        quality_note=quality_note(record),
        steps=[
            ShownStep(flow_label(flow.flow), flow.steps[place])
            for place in range(len(record.sizes.contexts))
            for flow in record.flows
        ],
        steps_note=steps_note(record),
        usages=usages,
        facts={
            "tilewright": record.versions.tilewright,
            "engine": record.versions.engine,
            "seed": str(record.seed),
            "machine": record.machine_hash[:12],
        },
        commands=NEXT,
    )
