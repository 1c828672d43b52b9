"""Records of runs that tests may write, read, compare and explain."""

from typing import Any

from tilewright.records import (
    MachineOfRun,
    RunParts,
    RunRecord,
    Totals,
    Versions,
    WhatRan,
)

VERSIONS = Versions(tilewright="0.1", python="3.11", numpy="2.0", greenlet="3.1", engine="native")


def run_record(latency_ps: int = 7, **fields: Any) -> RunRecord:
    """A record that is valid by itself; ``fields`` replace what they name."""
    document: dict[str, Any] = {
        "what": WhatRan(command="run", program="qkv_gemm"),
        "versions": VERSIONS,
        "machine": MachineOfRun(name="ahbm", source="ahbm"),
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
