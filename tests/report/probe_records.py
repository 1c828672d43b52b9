"""Small records of probes."""

from tilewright.records import Breakdown, ProbeRecord, ProbeRow, installed_versions

__all__ = ("record_of", "row_of")


def row_of(case: str, num_bytes: int, latency_ps: int, bound_ps: int) -> ProbeRow:
    parts = Breakdown(overhead=latency_ps, wire=0, serialisation=0, queueing=0, memory=0, refresh=0)
    return ProbeRow(
        case=case,
        bytes=num_bytes,
        issuers=1,
        latency_ps=latency_ps,
        bound_ps=bound_ps,
        ratio=latency_ps / bound_ps,
        bandwidth_gbs=1000 * num_bytes / latency_ps,
        bound_gbs=1000 * num_bytes / bound_ps,
        refresh_limited_gbs=200.0,
        utilisation=0.5,
        bottleneck="a -> b",
        breakdown_ps=parts,
    )


def record_of(*rows: ProbeRow, machine: str = "mine") -> ProbeRecord:
    return ProbeRecord(
        ok=True,
        machine=machine,
        machine_hash="0" * 64,
        versions=installed_versions(engine="reference"),
        cases=rows,
    )
