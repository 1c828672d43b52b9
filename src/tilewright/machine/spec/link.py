"""Links between chiplets, packages and the host."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from tilewright.machine.spec.block import BlockSpec
from tilewright.machine.spec.quantity import BytesPerUs, Count, Latency, Micrometres, Size, Spec
from tilewright.machine.spec.rule import BrokenRule

CommandSize = Annotated[Size, Field(le=65_536)]  # every launch sends some to each PE


class UcieSpec(BlockSpec):
    """Die-to-die ports: each side of a cube has one, each made of parallel connections.

    A packet is taken in whole at the receiving side: a rate boundary.
    """

    connections: Count = Field(4, description="parallel connections of a port")
    bytes_per_us: BytesPerUs = Field(128_000, description="payload, each way, per connection")
    side_ps: Latency = Field(8_000, description="latency of one side; a crossing has two")
    buffer_bytes: Size = Field(8_192, description="receive buffer per virtual channel")
    length_um: Micrometres = Field(1_000, description="wire between two dies")


class PcieSpec(BlockSpec):
    """The host link. Rate = GT/s x lanes x code / 8, of which payload / (payload + overhead)."""

    generation: Annotated[int, Field(ge=1, le=5)] = Field(5, description="PCIe 1 to 5")
    lanes: Literal[1, 2, 4, 8, 16] = Field(16, description="lanes of the link")
    payload_bytes: Size = Field(256, description="most payload of one transaction packet")
    overhead_bytes: Annotated[int, Field(ge=0, le=4096)] = Field(
        24, description="header, sequence number and checksum of one transaction packet"
    )
    endpoint_ps: Latency = Field(100_000, description="latency of the endpoint, each way")
    buffer_bytes: Size = Field(65_536, description="receive buffer per virtual channel")
    length_um: Micrometres = Field(100_000, description="wire from the host")


class HostSpec(Spec):
    """The host processor and its link to each SIP."""

    pcie: PcieSpec = PcieSpec()
    in_flight_bytes: Size = Field(262_144, description="host transfers outstanding per SIP")
    command_bytes: CommandSize = Field(64, description="a command or its completion on the way")
    entry_bytes: CommandSize = Field(
        16, description="what a command names: a page range, ring, argument"
    )


class FabricSpec(BlockSpec):
    """How SIPs are joined: by a switch, or by their own links in a ring, torus or mesh."""

    kind: Literal["switch", "ring", "torus", "mesh"] = Field("switch", description="the shape")
    columns: Count | None = Field(
        None, description="SIPs in a row of a torus or mesh; null: all in one row"
    )
    links: Count = Field(4, description="links of a SIP, dealt over its directions")
    bytes_per_us: BytesPerUs = Field(128_000, description="one link, each way")
    latency_ps: Latency = Field(200_000, description="one link, end to end")
    buffer_bytes: Size = Field(65_536, description="receive buffer per virtual channel")
    switch_ps: Latency = Field(100_000, description="latency of the switch")

    def broken_rules(self) -> Iterator[BrokenRule]:
        if self.columns is not None and self.kind in ("switch", "ring"):
            found = f"{self.columns} with kind {self.kind}"
            fix = "remove it, or set kind to torus or mesh"
            yield BrokenRule("columns", found, "null: the shape has no rows", fix, ("kind",))
