"""What the page of the demonstration says, in sentences that follow from its record."""

from collections.abc import Sequence

from tilewright.machine.build import Machine
from tilewright.records.demo import DemoFlow, DemoRecord, DemoStep
from tilewright.report.decode_page.model import DecodePage, ShownStep, ShownUsage, context_text
from tilewright.report.format import short_latency
from tilewright.units import share_text

_LABELS = {
    "quest": "Quest",
    "block_sparse_attention": "block-sparse",
    "streaming_llm": "StreamingLLM",
}
_NEARLY_AS_GOOD = 0.05  # of the mass: among these the fastest flow is the one to take

NEXT = {
    "tilewright attention run --flow quest --backend machine --context 32768": (
        "one step in detail: bytes of each stage, bounds, fusion"
    ),
    "tilewright attention compare --source synthetic --flows quest,streaming_llm": (
        "what flows keep at other budgets, and how sure that is"
    ),
    "tilewright machine show ahbm": "what the machine is; make your own and pass it by --machine",
}


def flow_label(flow: str) -> str:
    """As people call it.

    >>> flow_label("quest"), flow_label("dense")
    ('Quest', 'dense')
    """
    return _LABELS.get(flow, flow)


def meaning_of(record: DemoRecord) -> tuple[str, str]:
    """Two sentences: which flow to take, and what limits it."""
    sparse = [flow for flow in record.flows if flow.graph_hash is not None]
    best = _best(sparse)
    return _choice(record, sparse, best), _limit(record, best)


def _best(sparse: Sequence[DemoFlow]) -> DemoFlow:
    most = max(flow.quality.mass for flow in sparse)
    good = [flow for flow in sparse if flow.quality.mass >= most - _NEARLY_AS_GOOD]
    return max(good, key=_speedup)


def _speedup(flow: DemoFlow) -> float:
    return flow.steps[-1].speedup


def _choice(record: DemoRecord, sparse: Sequence[DemoFlow], best: DemoFlow) -> str:
    label, length = flow_label(best.flow), context_text(record.sizes.contexts[-1])
    text = (
        f"At {length} tokens a decode step of {label} is {_speedup(best):.1f} times as fast as "
        f"dense attention on {record.machine} and keeps {share_text(best.quality.mass)} of its "
        f"softmax, with {_needles(best)} planted needles found"
    )
    fastest = max(sparse, key=_speedup)
    if fastest is best:
        return f"{text}."
    return (
        f"{text}; {flow_label(fastest.flow)} is {_speedup(fastest):.1f} times as fast, but keeps "
        f"{share_text(fastest.quality.mass)} and finds {_needles(fastest)}."
    )


def _needles(flow: DemoFlow) -> str:
    needles = flow.quality.needles
    return f"{needles.found} of {needles.planted}"


def _limit(record: DemoRecord, best: DemoFlow) -> str:
    """How much of what bytes allow has become speed, and which stage loses most of the rest."""
    dense, step = record.flows[0].steps[-1], best.steps[-1]
    fewer = dense.attention.bytes / step.attention.bytes
    stage, lost_ps = _greatest_loss(step)
    return (
        f"Dense attention gets {share_text(dense.attention.hbm_fraction)} of what the HBM gives "
        f"beside its refresh; {flow_label(best.flow)} moves {fewer:.1f} times fewer bytes and "
        f"turns {share_text(step.speedup / step.bytes_bound_speedup)} of what bytes alone allow "
        f"into speed, the largest loss being {stage} ({short_latency(lost_ps)})."
    )


def _greatest_loss(step: DemoStep) -> tuple[str, int]:
    """The stage that takes longest beyond its share of the work over rates, by its needed bytes."""
    found = step.attention
    losses_ps = {
        stage.name: stage.latency_ps - stage.ideal_bytes * found.rate_ps // found.ideal_bytes
        for stage in found.stages
    }
    stage = max(losses_ps, key=lambda name: losses_ps[name])
    return stage, max(0, losses_ps[stage])


def quality_note(record: DemoRecord) -> str:
    sizes = record.sizes
    rows = sizes.quality_batch * sizes.kv_heads
    return (
        f"Quality: {rows} rows of {context_text(sizes.quality_context)} tokens with a planted "
        f"needle each, computed by the simulated machine in {sizes.dtype}, against dense "
        f"attention in float64."
    )


def phases_note(record: DemoRecord) -> str:
    """Say how well the latencies are known."""
    spreads = [
        step.attention.phases
        for flow in record.flows
        for step in flow.steps
        if step.attention.phases is not None and step.attention.phases.count > 1
    ]
    widths = [spread.relative_half_width or 0.0 for spread in spreads]
    if not spreads:
        return "Each at one refresh phase of the HBM."
    counts = sorted({spread.count for spread in spreads})
    numbers = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    least = min(spread.min_ps / spread.mean_ps for spread in spreads)
    greatest = max(spread.max_ps / spread.mean_ps for spread in spreads)
    return (
        f"Steps shorter than 20 refresh intervals are means over {numbers} refresh phases, known "
        f"to {100 * max(widths):.1f} % or better; at one phase a step takes "
        f"{100 * (1 - least):.1f} % less to {100 * (greatest - 1):.1f} % more."
    )


def steps_note(record: DemoRecord) -> str:
    sizes = record.sizes
    reduced = " The Python engine ran, so contexts are short." if record.is_reduced else ""
    return (
        f"Time: one layer, {sizes.num_rows} rows on {record.num_pes} PEs of {record.device}, "
        f"{sizes.budget} pages of {sizes.page_size} tokens a row, without values.{reduced} "
        f"{phases_note(record)}"
    )


def page_of(record: DemoRecord, machine: Machine, usages: Sequence[ShownUsage]) -> DecodePage:
    """All figures are those of the record; usages are too many for it."""
    return DecodePage(
        title=f"Which attention should decode on {record.machine}?",
        meaning=meaning_of(record),
        machine=machine,
        quality={flow_label(flow.flow): flow.quality for flow in record.flows},
        quality_note=quality_note(record),
        steps=[
            ShownStep.of(flow.steps[place], flow=flow_label(flow.flow))
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
