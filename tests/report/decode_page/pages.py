"""Pages of decode steps for tests: any flows, contexts, stages and shares."""

from hypothesis import strategies as st

from tests.studies.demo_records import attention
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.parse import parse_machine
from tilewright.records import Bottleneck
from tilewright.records.attention.decode import DecodeStage, StageName
from tilewright.records.attention.run import NeedleFigures
from tilewright.records.demo import DemoQuality, DemoStep
from tilewright.report.decode_page.model import DecodePage, ShownStep, ShownUsage

SMALL = build_machine(parse_machine("ahbm-small"))
STAGES: tuple[StageName, ...] = ("launch", "scoring", "selection", "attention", "merge")
FLOWS = ("dense", "quest", "block_sparse_attention", "streaming_llm")

# what XML can say; a page is fed by names and sentences of all kinds
words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="\ufffe\uffff"),
    min_size=1,
    max_size=20,
)


def quality(mass: float, error: float, found: int, planted: int) -> DemoQuality:
    needles = NeedleFigures(planted=planted, found=found)
    return DemoQuality(
        mass=mass, output_error=error, needles=needles, latency_ps=1, values_ok=True, max_error=None
    )


def shown(
    flow: str, context: int, stages: tuple[DecodeStage, ...], speedup: float, bottleneck: Bottleneck
) -> ShownStep:
    found = {
        "latency_ps": sum(stage.latency_ps for stage in stages),
        "bytes": sum(stage.bytes for stage in stages),
        "stages": stages,
        "bottleneck_figures": bottleneck,
    }
    step = DemoStep(
        context=context, selection="all", speedup=speedup, bytes_bound_speedup=1.0,
        attention=attention(100, 100, is_dense=True).model_copy(update=found),
    )  # fmt: skip
    return ShownStep.of(step, flow=flow)


@st.composite
def qualities(draw: st.DrawFn) -> DemoQuality:
    planted = draw(st.integers(1, 64))
    shares = st.floats(0, 1)
    return quality(draw(shares), draw(st.floats(0, 2)), draw(st.integers(0, planted)), planted)


@st.composite
def steps_of(draw: st.DrawFn, flow: str, context: int) -> ShownStep:
    names = draw(st.lists(st.sampled_from(STAGES), min_size=1, unique=True))
    stages = tuple(
        DecodeStage(
            name=name,
            latency_ps=draw(st.integers(1, 10**9)),
            bytes=draw(st.integers(0, 2**40)),
            ideal_bytes=draw(st.integers(0, 2**40)),
        )
        for name in names
    )
    bottleneck = Bottleneck(kind="part", name=draw(words), share=draw(st.floats(0, 1)))
    return shown(flow, context, stages, draw(st.floats(0.01, 1000)), bottleneck)


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
        quality={flow: quality(mass, 1 - mass, 15, 16) for flow, mass in masses.items()},
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
        DecodeStage(
            name=name,
            latency_ps=factors[flow] * unit_ps * (place + 1),
            bytes=1000 * context,
            ideal_bytes=990 * context,
        )
        for place, name in enumerate(STAGES)
        if flow != "dense" or name not in ("scoring", "selection")
    )
    bottleneck = Bottleneck(kind="memory", name="hbm_ctrl", share=0.93)
    speedup = 1.0 if flow == "dense" else 100 / factors[flow]
    return shown(flow, context, stages, speedup, bottleneck)
