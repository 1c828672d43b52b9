"""Pages of decode steps for tests: any flows, contexts, stages and shares."""

from dataclasses import replace

from hypothesis import strategies as st

from tilewright.machine.build import Machine, build_machine
from tilewright.machine.parse import parse_machine
from tilewright.report.decode_page.model import (
    DecodePage,
    FlowQuality,
    ShownStage,
    ShownStep,
    ShownUsage,
)

SMALL = build_machine(parse_machine("ahbm-small"))
STAGES = ("launch", "scoring", "selection", "attention", "merge")
FLOWS = ("dense", "quest", "block_sparse_attention", "streaming_llm")

# what XML can say; a page is fed by names and sentences of all kinds
words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="\ufffe\uffff"),
    min_size=1,
    max_size=20,
)


@st.composite
def qualities(draw: st.DrawFn) -> FlowQuality:
    planted = draw(st.integers(1, 64))
    shares = st.floats(0, 1)
    return FlowQuality(draw(shares), draw(st.floats(0, 2)), draw(st.integers(0, planted)), planted)


@st.composite
def steps_of(draw: st.DrawFn, flow: str, context: int) -> ShownStep:
    names = draw(st.lists(st.sampled_from(STAGES), min_size=1, unique=True))
    stages = tuple(
        ShownStage(
            name,
            draw(st.integers(1, 10**9)),
            draw(st.integers(0, 2**40)),
            draw(st.integers(0, 2**40)),
        )
        for name in names
    )
    total_ps = sum(stage.latency_ps for stage in stages)
    num_bytes = sum(stage.num_bytes for stage in stages)
    speedup = draw(st.floats(0.01, 1000))
    return ShownStep(flow, context, total_ps, total_ps, speedup, num_bytes, draw(words), stages)


@st.composite
def usages(draw: st.DrawFn, flow: str, context: int) -> ShownUsage:
    names = st.sampled_from([SMALL.link_name(link) for link in range(len(SMALL.links))])
    memories = st.sampled_from([node.name for node in SMALL.nodes if "hbm_ctrl" in node.name])
    shares = draw(st.dictionaries(names | memories, st.floats(0, 1), max_size=20))
    return ShownUsage(flow, context, shares)


@st.composite
def pages(draw: st.DrawFn) -> DecodePage:
    flows = draw(st.lists(words, min_size=1, max_size=5, unique=True))
    contexts = draw(st.lists(st.integers(1, 2**20), min_size=1, max_size=3, unique=True))
    return DecodePage(
        title=draw(words),
        meaning=draw(st.lists(words, max_size=2)),
        machine=SMALL,
        quality={flow: draw(qualities()) for flow in flows},
        quality_note=draw(words),
        steps=[draw(steps_of(flow, context)) for context in contexts for flow in flows],
        steps_note=draw(words),
        usages=[draw(usages(flows[0], contexts[0]))],
        facts={"seed": draw(words)},
        commands={draw(words): draw(words)},
    )


def typical_page(machine: Machine = SMALL) -> DecodePage:
    """Four flows at two contexts, as the demonstration has them."""
    masses = dict(zip(FLOWS, (1.0, 0.97, 0.93, 0.21), strict=True))
    factors = dict(zip(FLOWS, (26, 4, 3, 1), strict=True))
    steps = [
        _typical_step(flow, context, factors)
        for context in (32 * 1024, 128 * 1024)
        for flow in FLOWS
    ]
    shares = {
        name: 0.9
        for name in (node.name for node in machine.nodes)
        if name.startswith("sip0.") and "hbm_ctrl" in name
    }
    return DecodePage(
        title="Which attention on this machine?",
        meaning=("Quest keeps 97 % of the mass.", "Memories bound dense attention."),
        machine=machine,
        quality={flow: FlowQuality(mass, 1 - mass, 15, 16) for flow, mass in masses.items()},
        quality_note="On 4096 tokens.",
        steps=steps,
        steps_note="128 rows on one SIP.",
        usages=[ShownUsage("dense", 128 * 1024, shares), ShownUsage("quest", 128 * 1024, {})],
        facts={"seed": "1"},
        commands={"tilewright attention run --flow quest": "one step in detail"},
    )


def _typical_step(flow: str, context: int, factors: dict[str, int]) -> ShownStep:
    unit_ps = context * 40
    stages = tuple(
        ShownStage(name, factors[flow] * unit_ps * (place + 1), 1000 * context, 990 * context)
        for place, name in enumerate(STAGES)
        if flow != "dense" or name not in ("scoring", "selection")
    )
    step = ShownStep(
        flow,
        context,
        sum(stage.latency_ps for stage in stages),
        sum(stage.latency_ps for stage in stages),
        1.0,
        sum(stage.num_bytes for stage in stages),
        "HBM 93 %",
        stages,
    )
    return replace(step, speedup=1.0 if flow == "dense" else 100 / factors[flow])
