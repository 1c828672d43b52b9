"""From the record of the demonstration to the page that shows it."""

from collections.abc import Sequence

from tilewright.machine.build import Machine
from tilewright.records.demo import DemoFlow, DemoQuality, DemoRecord, DemoStep
from tilewright.report.decode_page.model import (
    DecodePage,
    FlowQuality,
    ShownStage,
    ShownStep,
    ShownUsage,
)
from tilewright.report.format import short_bottleneck
from tilewright.studies.demo.summary import NEXT, flow_label, meaning_of, quality_note, steps_note


def page_of(record: DemoRecord, machine: Machine, usages: Sequence[ShownUsage]) -> DecodePage:
    """All figures are those of the record; usages are too many for it."""
    return DecodePage(
        title=f"Which attention should decode on {record.machine}?",
        meaning=meaning_of(record),
        machine=machine,
        quality={flow_label(flow.flow): _quality(flow.quality) for flow in record.flows},
        quality_note=quality_note(record),
        steps=[
            _step(flow, flow.steps[place])
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


def _quality(quality: DemoQuality) -> FlowQuality:
    needles = quality.needles
    return FlowQuality(quality.mass, quality.output_error, needles.found, needles.planted)


def _step(flow: DemoFlow, step: DemoStep) -> ShownStep:
    attention = step.attention
    return ShownStep(
        flow=flow_label(flow.flow),
        context=step.context,
        latency_ps=attention.latency_ps,
        mean_ps=attention.figure_ps,
        speedup=step.speedup,
        num_bytes=attention.bytes,
        bottleneck=short_bottleneck(attention.bottleneck_figures),
        stages=tuple(
            ShownStage(stage.name, stage.latency_ps, stage.bytes, stage.ideal_bytes)
            for stage in attention.stages
        ),
        phases=attention.phases,
    )
