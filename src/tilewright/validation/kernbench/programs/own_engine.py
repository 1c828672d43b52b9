"""A program that builds its machine from a topology file and runs in a context of its own."""

from pathlib import Path

import numpy as np
from kernbench.policy.placement.dp import DPPolicy
from kernbench.runtime_api.context import RuntimeContext
from kernbench.runtime_api.types import resolve_device
from kernbench.sim_engine.engine import GraphEngine
from kernbench.topology.builder import resolve_topology

RESULTS = {}


def add_kernel(x_ptr, y_ptr, out_ptr, rows, columns, tl):
    part = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    at = part * rows * columns * 2
    x = tl.load(x_ptr + at, (rows, columns), "f16")
    y = tl.load(y_ptr + at, (rows, columns), "f16")
    tl.store(out_ptr + at, x + y)


def run(torch):
    graph = resolve_topology(str(Path(__file__).with_name("topology.yaml")))
    engine = GraphEngine(graph)
    cubes = graph.spec["sip"]["cube_mesh"]["w"] * graph.spec["sip"]["cube_mesh"]["h"]
    pes = graph.spec["cube"]["pe_layout"]["pe_per_corner"] * 4
    rows = 2 * cubes * pes
    x, y = np.random.default_rng(12).standard_normal((2, rows, 24)).astype(np.float16)
    device = resolve_device("all")
    with RuntimeContext(
        engine=engine, target_device=device, correlation_id="own", spec=graph.spec
    ) as ctx:
        split = DPPolicy(cube="row_wise", pe="row_wise")
        a = ctx.empty(x.shape, dp=split)
        b = ctx.empty(y.shape, dp=split)
        out = ctx.zeros(x.shape, dp=split)
        a.copy_(ctx.from_numpy(x))
        b.copy_(ctx.from_numpy(y))
        handle = ctx.launch("add", add_kernel, a, b, out, 2, 24)
        completion, trace = engine.get_completion(handle)
        RESULTS.update(x=x, y=y, out=out.numpy(), ok=completion.ok, trace=trace, cubes=cubes)
        RESULTS.update(is_all=device.is_all, done=ctx.is_completed(handle))
