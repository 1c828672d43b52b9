"""The registers of a PE: where block values are, and what it costs when they do not fit."""

from dataclasses import dataclass, field

from tilewright.device.size import check_size
from tilewright.device.tcm import Tcm
from tilewright.errors import InternalError
from tilewright.machine.spec import RegisterFileSpec


@dataclass(frozen=True, eq=False, slots=True)
class Residence:
    """Where the bytes of one block value are, for as long as it lives."""

    register_bytes: int
    spilled_bytes: int


@dataclass(eq=False, slots=True)
class RegisterFileState:
    """Plain state; the figures are for reports."""

    used_bytes: int = 0
    peak_bytes: int = 0
    spilled_bytes: int = 0  # of all values so far
    living: set[Residence] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class RegisterFile:
    """A new value takes the registers that are free; what is left of it spills to the TCM.

    The spilled part holds the TCM's write port once, when the value is made, and its read port at
    every use. It stays there while the value lives: no value moves when another one dies.
    """

    name: str  # a path, "sip0.cube3.pe5.registers"
    spec: RegisterFileSpec
    tcm: Tcm
    state: RegisterFileState = field(default_factory=RegisterFileState)

    def place(self, num_bytes: int) -> Residence:
        """Find room for a value; it is there until ``free``."""
        check_size(self.name, "num_bytes", num_bytes)
        state = self.state
        register_bytes = min(num_bytes, self.spec.capacity_bytes - state.used_bytes)
        residence = Residence(register_bytes, num_bytes - register_bytes)
        state.used_bytes += register_bytes
        state.peak_bytes = max(state.peak_bytes, state.used_bytes)
        state.spilled_bytes += residence.spilled_bytes
        state.living.add(residence)
        return residence

    def free(self, residence: Residence) -> None:
        """Give a value's registers back; once."""
        if residence not in self.state.living:
            found, expected = f"{residence} that is not here", "a value that lives"
            raise InternalError(self.name, found, expected, "free each value once, where it is")
        self.state.living.remove(residence)
        self.state.used_bytes -= residence.register_bytes

    def write_ps(self, residence: Residence) -> int:
        """Time on the TCM's write port when the value is made; 0: all of it is in registers."""
        return self.tcm.write_ps(residence.spilled_bytes) if residence.spilled_bytes else 0

    def read_ps(self, residence: Residence) -> int:
        """Time on the TCM's read port at each use of the value; 0: all of it is in registers."""
        return self.tcm.read_ps(residence.spilled_bytes) if residence.spilled_bytes else 0
