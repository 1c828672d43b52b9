"""What a route costs on an idle machine: the engine's law for one packet, without waiting."""

from collections.abc import Iterable

from tilewright.machine.node import Link
from tilewright.units import flit_ps


def zero_load_ps(links: Iterable[Link], *, num_flits: int, flit_bytes: int) -> int:
    """From entering the first link to delivery behind the last one (``docs/engine.md`` section 2).

    Without re-assembly this is the sum of flit times and latencies plus the other flits at the
    slowest link.
    """
    head_ps = tail_ps = 0
    for link in links:
        cycle_ps = flit_ps(flit_bytes=flit_bytes, bytes_per_us=link.bytes_per_us)
        start_ps = tail_ps if link.reassemble else head_ps
        leaves_ps = max(start_ps + num_flits * cycle_ps, tail_ps + cycle_ps)
        head_ps = start_ps + cycle_ps + link.latency_ps
        tail_ps = leaves_ps + link.latency_ps
    return tail_ps
