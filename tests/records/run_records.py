"""Records of runs that tests may write, read, compare and explain."""

from typing import Any

from tilewright.records import (
    MachineFigures,
    MachineOfRun,
    RunParts,
    RunRecord,
    Totals,
    Versions,
    WhatRan,
)

VERSIONS = Versions(tilewright="0.1", python="3.11", numpy="2.0", greenlet="3.1", engine="native")
FIGURES = MachineFigures(
    num_sips=1,
    num_cubes=4,
    num_pes=32,
    f16_flop_per_s=2**48,
    hbm_bytes=2**36,
    hbm_bytes_per_us=8_192_000,
    refreshed_hbm_bytes_per_us=6_990_507,
    cube_bisection_bytes_per_us=1_536_000,
    sip_bisection_bytes_per_us=1_024_000,
    fabric_bisection_bytes_per_us=None,
)


def run_record(latency_ps: int = 7, **fields: Any) -> RunRecord:
    """A record that is valid by itself; ``fields`` replace what they name."""
    document: dict[str, Any] = {
        "what": WhatRan(command="run", program="qkv_gemm"),
        "versions": VERSIONS,
        "ok": True,
        "machine": MachineOfRun(name="ahbm", source="ahbm", figures=FIGURES),
        "machine_hash": "0" * 64,
        "seed": 0,
        "latency_ps": latency_ps,
        "breakdown_ps": RunParts(gemm=latency_ps),
        "bottleneck": "the GEMM unit, all of the time",
        "totals": Totals(
            time_ps=latency_ps, num_events=1, num_launches=1, loaded_bytes=0, stored_bytes=0
        ),
    }
    return RunRecord(**(document | fields))
