"""Records of the demonstration for tests, with figures that are easy to tell apart."""

from tilewright.records import Bottleneck, MachineFigures, installed_versions
from tilewright.records.attention.decode import DecodeAttention, DecodeStage, StageName
from tilewright.records.attention.run import NeedleFigures
from tilewright.records.demo import DemoFlow, DemoQuality, DemoRecord, DemoSizes, DemoStep

FLOWS = ("dense", "quest", "block_sparse_attention", "streaming_llm")
SPEEDUPS = (1.0, 9.0, 12.0, 50.0)
MASSES = (1.0, 0.97, 0.95, 0.25)
CONTEXTS = (32 * 1024, 128 * 1024)
HASH = "0123456789abcdef" * 4

SHARES: dict[str, tuple[tuple[StageName, int], ...]] = {
    "dense": (("attention", 95), ("launch", 5)),
    "sparse": (("scoring", 40), ("selection", 15), ("attention", 25), ("launch", 20)),
}


def attention(latency_ps: int, num_bytes: int, *, is_dense: bool) -> DecodeAttention:
    """``latency_ps`` and ``num_bytes`` divide by 100."""
    stages = tuple(
        DecodeStage(
            name=name,
            latency_ps=latency_ps // 100 * share,
            bytes=num_bytes // 100 * share,
            ideal_bytes=0 if name == "launch" else num_bytes // 100 * share,
        )
        for name, share in SHARES["dense" if is_dense else "sparse"]
    )
    return DecodeAttention(
        latency_ps=latency_ps,
        stages=stages,
        bytes=num_bytes,
        ideal_bytes=sum(stage.ideal_bytes for stage in stages),
        bytes_ratio=1.0,
        bound_ps=latency_ps // 100 * 80,
        bound_resource="HBM",
        ratio=1.25,
        hbm_fraction=0.9,
        bottleneck="the HBM behind sip0.cube0.hbm_ctrl.pe0: in use 91 % of the time",
        bottleneck_figures=Bottleneck(kind="memory", name="sip0.cube0.hbm_ctrl.pe0", share=0.91),
        pages_read=100,
        launches=1,
        num_events=1000,
        tiling={},
        kernels=("attend",),
        kernels_hash=HASH,
    )


def step(flow: str, context: int, speedup: float) -> DemoStep:
    dense_ps = context * 2400
    return DemoStep(
        context=context,
        selection="all" if flow == "dense" else "uniform",
        speedup=speedup,
        bytes_bound_speedup=1.5 * speedup,
        attention=attention(
            round(dense_ps / speedup / 100) * 100,
            round(context * 500 / speedup) * 100,
            is_dense=flow == "dense",
        ),
    )


def demo_record(*, is_reduced: bool = False, values_ok: bool = True) -> DemoRecord:
    """As a run of ``tilewright demo`` leaves it."""
    return DemoRecord(
        ok=values_ok,
        versions=installed_versions(engine="native"),
        machine="ahbm",
        machine_hash=HASH,
        figures=MachineFigures(
            num_sips=2,
            num_cubes=32,
            num_pes=256,
            f16_flop_per_s=10**15,
            hbm_bytes=2**40,
            hbm_bytes_per_us=10**6,
            refreshed_hbm_bytes_per_us=10**6,
            cube_bisection_bytes_per_us=10**6,
            sip_bisection_bytes_per_us=None,
            fabric_bisection_bytes_per_us=None,
        ),
        device="sip:0",
        num_pes=8 if is_reduced else 128,
        is_reduced=is_reduced,
        seed=1,
        sizes=DemoSizes(
            batch=1 if is_reduced else 16,
            kv_heads=8,
            query_heads=4,
            head_dim=128,
            page_size=16,
            dtype="float16",
            budget=64,
            contexts=CONTEXTS,
            quality_batch=2,
            quality_context=4096,
        ),
        flows=tuple(
            DemoFlow(
                flow=flow,
                graph_hash=None if flow == "dense" else HASH,
                quality=DemoQuality(
                    mass=mass,
                    output_error=1 - mass,
                    needles=NeedleFigures(planted=16, found=round(16 * mass)),
                    latency_ps=10**7,
                    values_ok=values_ok,
                    max_error=0.0004,
                ),
                steps=tuple(step(flow, context, speedup) for context in CONTEXTS),
            )
            for flow, mass, speedup in zip(FLOWS, MASSES, SPEEDUPS, strict=True)
        ),
        page="tilewright-demo.html",
        trace="tilewright-demo.pftrace",
        trace_events=1234,
        demo_s=30.0,
    )
