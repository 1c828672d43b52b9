"""The schema of a machine file, one file per part of the machine."""

from tilewright.machine.spec.field import BlockSpec
from tilewright.machine.spec.hbm import HbmSpec, HbmTimingSpec, RefreshSpec, SramSpec
from tilewright.machine.spec.machine import AddressSpec, CubeSpec, MachineSpec, SipSpec
from tilewright.machine.spec.network import (
    CrossbarSpec,
    FabricSpec,
    HostSpec,
    IoChipletSpec,
    MeshSpec,
    PcieSpec,
    RingSpec,
    UcieSpec,
)
from tilewright.machine.spec.pe import (
    CommandProcessorSpec,
    DmaSpec,
    DotArraySpec,
    GemmSpec,
    MmuSpec,
    PeSpec,
    RegisterFileSpec,
    SystolicSpec,
    TcmSpec,
    VectorSpec,
)

__all__ = (
    "AddressSpec",
    "BlockSpec",
    "CommandProcessorSpec",
    "CrossbarSpec",
    "CubeSpec",
    "DmaSpec",
    "DotArraySpec",
    "FabricSpec",
    "GemmSpec",
    "HbmSpec",
    "HbmTimingSpec",
    "HostSpec",
    "IoChipletSpec",
    "MachineSpec",
    "MeshSpec",
    "MmuSpec",
    "PcieSpec",
    "PeSpec",
    "RefreshSpec",
    "RegisterFileSpec",
    "RingSpec",
    "SipSpec",
    "SramSpec",
    "SystolicSpec",
    "TcmSpec",
    "UcieSpec",
    "VectorSpec",
)
