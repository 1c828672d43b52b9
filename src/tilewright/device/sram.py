"""The shared memory of a cube."""

from tilewright.device.block import build_service
from tilewright.engine import Engine, ServerSpec
from tilewright.engine.banked_spec import SimpleSpec
from tilewright.machine.spec import SramSpec


def add_sram(engine: Engine, name: str, spec: SramSpec, *, packet_bytes: int) -> int:
    """The server of the memory: accesses one after the other, bytes at ``bytes_per_us``.

    ``access_ps`` is the latency of its node, so the link to it has that already.
    """
    service = build_service(name, spec)
    if service is not None:
        return engine.add_server(ServerSpec(name, service=service))
    memory = sram_memory(spec, packet_bytes=packet_bytes)
    return engine.add_memory(name, memory, spec.capacity_bytes)


def sram_memory(spec: SramSpec, *, packet_bytes: int) -> SimpleSpec:
    """Return what the engine is told of the memory, unless the user has a block for it."""
    return SimpleSpec(
        pseudo_channels=1,
        interleave_bytes=packet_bytes,
        bytes_per_us=spec.bytes_per_us,
        latency_ps=0,
    )
