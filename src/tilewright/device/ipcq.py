"""Queues between PEs: a ring of slots at the receiver, data one way, credits the other.

A message is cut into fragments of at most a slot. For each of them the sender's queue waits for a
credit, in the order of fragments; the fragment travels to the ring on the virtual channels of
communication, and arrives when it has been written there. The receiver reads the slot and sends a
credit back. The memory of a ring decides how a slot is written and read:

- TCM: the fragment goes to the receiver's DMA and through the write port; it is read through the
  read port;
- SRAM, HBM: the fragment is written over the network; when that is confirmed, a token of
  ``token_bytes`` tells the receiver, whose DMA then reads the slot.

Whether there is room is known to the sender alone; a full ring keeps nobody else's packets waiting.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from tilewright.device.build import Device
from tilewright.device.dma import Access, Channel
from tilewright.device.pe import Pe
from tilewright.engine import ServerSpec
from tilewright.engine.core import (
    EXCHANGE,
    FROM_START,
    HOLD,
    NO_EFFECT,
    TIMER,
    TRANSFER,
    IssuedStep,
)
from tilewright.engine.issuer import IssuerSpec
from tilewright.errors import DeviceError
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.route import Traffic
from tilewright.memory.address import MemoryKind
from tilewright.units import flit_ps


class RingKind(Enum):
    """Where the slots of a ring are."""

    TCM = "tcm"  # in the part that programs do not get
    SRAM = "sram"  # of the receiver's cube
    HBM = "hbm"  # the receiver's slice


class Backpressure(Enum):
    """What the sender's CPU does while a ring is full."""

    SLEEP = "sleep"  # until a credit wakes it: goes on one command's time after it
    POLL = "poll"  # looks again and again, each look takes a command's time


@dataclass(frozen=True, slots=True)
class RingSpec:
    """All rings of a launch are alike."""

    kind: RingKind = RingKind.TCM
    slots: int = 4
    slot_bytes: int = 4096
    backpressure: Backpressure = Backpressure.SLEEP
    token_bytes: int = 16  # of a credit, and of the notice of an arrival

    def __post_init__(self) -> None:
        for name in ("slots", "slot_bytes", "token_bytes"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                fix = f"change {name}"
                raise DeviceError("ring", f"{name}={value!r}", "a whole number from 1 up", fix)

    @property
    def num_bytes(self) -> int:
        return self.slots * self.slot_bytes

    def fragments(self, num_bytes: int) -> list[int]:
        """Bytes of each fragment of a message.

        >>> RingSpec(slot_bytes=4096).fragments(10_000)
        [4096, 4096, 1808]
        """
        whole, rest = divmod(num_bytes, self.slot_bytes)
        return [self.slot_bytes] * whole + [rest] * bool(rest)


@dataclass(frozen=True, slots=True)
class Ring:
    """One way from a sender to a receiver: what its fragments occupy, and its three counts.

    ``arrived``, ``credits`` and ``sent`` are signals: fragments that can be read, fragments that
    there was or is room for, fragments that the sender has let go.
    """

    name: str
    spec: RingSpec
    control_ps: int
    control_route: int  # the sender's queue
    data: int  # a route to the receiver's DMA, or a round trip that writes to a memory
    token_route: int  # to the receiver's DMA
    credit_route: int  # and back
    receiver: IssuerSpec  # that has the ports of its TCM
    read: int  # its read port, or a round trip that reads the memory
    address: int  # of the first slot, in a memory
    arrived: int
    credits: int
    sent: int

    def send_steps(self, first: int, sizes: Sequence[int]) -> list[IssuedStep]:
        """Of a message whose first fragment is the ring's fragment ``first``."""
        steps: list[IssuedStep] = []
        for number, size in enumerate(sizes, start=first):
            waits = ((self.credits, number + 1), *(((self.sent, number),) if number else ()))
            control = len(steps)
            steps.append(
                (HOLD, self.control_route, self.control_ps, 0, FROM_START, waits,
                 ((self.sent, 1),), NO_EFFECT, False)
            )  # fmt: skip
            arrives = ((self.arrived, 1),)
            if self.spec.kind is RingKind.TCM:
                hold_ps = flit_ps(flit_bytes=size, bytes_per_us=self.receiver.write_bytes_per_us)
                port = self.receiver.write_route
                steps += [
                    (TRANSFER, self.data, size, 0, control, (), (), NO_EFFECT, True),
                    (HOLD, port, hold_ps, 0, control + 1, (), arrives, NO_EFFECT, False),
                ]
            else:
                slot, token_bytes = self._slot(number), self.spec.token_bytes
                steps += [
                    (EXCHANGE, self.data, size, slot, control, (), (), NO_EFFECT, True),
                    (TRANSFER, self.token_route, token_bytes, 0, control + 1, (), arrives,
                     NO_EFFECT, False),
                ]  # fmt: skip
        return steps

    def receive_steps(self, first: int, sizes: Sequence[int]) -> list[IssuedStep]:
        """The reverse: each slot is read when it has arrived, and then given back."""
        steps: list[IssuedStep] = []
        for number, size in enumerate(sizes, start=first):
            waits = ((self.arrived, number + 1),)
            read = len(steps)
            if self.spec.kind is RingKind.TCM:
                hold_ps = flit_ps(flit_bytes=size, bytes_per_us=self.receiver.read_bytes_per_us)
                steps.append((HOLD, self.read, hold_ps, 0, FROM_START, waits, (), NO_EFFECT, True))
            else:
                slot = self._slot(number)
                steps.append(
                    (EXCHANGE, self.read, size, slot, FROM_START, waits, (), NO_EFFECT, True)
                )
            steps.append(
                (TRANSFER, self.credit_route, self.spec.token_bytes, 0, read, (),
                 ((self.credits, 1),), NO_EFFECT, False)
            )  # fmt: skip
        return steps

    def peek_steps(self, num_arrived: int) -> list[IssuedStep]:
        """Return the step that waits for so many fragments and takes no time of its own."""
        waits = ((self.arrived, num_arrived),)
        return [(TIMER, 0, 0, 0, FROM_START, waits, (), NO_EFFECT, True)]

    def _slot(self, number: int) -> int:
        return self.address + number % self.spec.slots * self.spec.slot_bytes


def check_room(device: Device, spec: RingSpec, where: str, num_rings: int, address: int) -> None:
    """Refuse rings that do not fit: all rings of a PE in a TCM, one at its address in a memory."""
    machine = device.machine
    match spec.kind:
        case RingKind.TCM:
            room = machine.spec.pe.tcm.reserved_bytes
            found = f"{num_rings} rings of {spec.num_bytes} bytes"
            needed, place = num_rings * spec.num_bytes, "the reserved part of the TCM"
        case RingKind.SRAM | RingKind.HBM:
            sizes = machine.addresses
            is_sram = spec.kind is RingKind.SRAM
            room = sizes.sram_bytes if is_sram else sizes.slice_bytes
            place = "the SRAM" if is_sram else "the slice"
            found, needed = f"a ring at {address:#x}", address + spec.num_bytes
        case _:
            assert_never(spec.kind)
    if needed > room or address < 0:
        fix = "use fewer or smaller slots, or another memory"
        raise DeviceError(where, f"{found}, to byte {needed}", f"room in {place}: {room}", fix)


class RingPool:
    """The queues that rings of a device occupy at their senders, used again by later rings.

    An engine cannot remove a server. So a ring that has ended leaves its queue to the next one of
    the same sender and place, and gives its signals up.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._keys: dict[int, tuple[str, PeCoord]] = {}  # place and sender, by the queue's route
        self._free: dict[tuple[str, PeCoord], list[int]] = {}  # routes, by place and sender
        self._num_queues: Counter[str] = Counter()  # by place
        self._ended: list[Ring] = []  # whose last credits may be under way

    def build(
        self, place: str, name: str, spec: RingSpec, sender: Pe, receiver: Pe, address: int = 0
    ) -> Ring:
        """Build a ring that is called ``name``, with all its slots free, at a place."""
        key = place, sender.coord
        free = self._free.get(key)
        if free:
            queue = free.pop()
        else:
            self._num_queues[place] += 1
            server = ServerSpec(f"{place} {self._num_queues[place]}.control")
            queue = self._device.engine.add_route([self._device.engine.add_server(server)])
            self._keys[queue] = key
        return _build_ring(self._device, name, spec, sender, receiver, address, queue)

    def give_back(self, rings: Iterable[Ring]) -> None:
        """Take back the queues of rings that no program uses any more."""
        self._ended.extend(rings)
        engine, left = self._device.engine, []
        for ring in self._ended:
            signals = ring.arrived, ring.credits, ring.sent
            arrived, credits, sent = map(engine.signal_value, signals)
            if arrived != sent or credits != sent + ring.spec.slots:
                left.append(ring)  # something is under way: it is asked again with the next rings
                continue
            for signal in signals:
                engine.remove_signal(signal)
            self._free.setdefault(self._keys[ring.control_route], []).append(ring.control_route)
        self._ended = left


def _build_ring(
    device: Device, name: str, spec: RingSpec, sender: Pe, receiver: Pe, address: int, queue: int
) -> Ring:
    """Add a ring to the engine, all its slots free; ``queue`` is the sender's, as a route."""
    engine = device.engine
    signals = [engine.add_signal(f"{name}.{what}") for what in ("arrived", "credits", "sent")]
    engine.raise_signal(signals[1], spec.slots)
    token_route = device.message_route(sender.coord, receiver.coord)
    data, read = token_route, receiver.issuer.read_route
    if spec.kind is not RingKind.TCM:
        data, read = _memory_trips(device, spec, sender, receiver)
    return Ring(
        name,
        spec,
        control_ps=device.machine.spec.pe.scheduler.command_ps,
        control_route=queue,
        data=data,
        token_route=token_route,
        credit_route=device.message_route(receiver.coord, sender.coord),
        receiver=receiver.issuer,
        read=read,
        address=address,
        arrived=signals[0],
        credits=signals[1],
        sent=signals[2],
    )


def _memory_trips(device: Device, spec: RingSpec, sender: Pe, receiver: Pe) -> tuple[int, int]:
    """How the sender writes the memory of a ring, and how the receiver reads it."""
    machine, there = device.machine, receiver.coord
    node = device.memory_node(there, MemoryKind(spec.kind.value))
    dma = machine.node_of(NodeKind.PE_DMA, there)
    read = device.round_trip(dma, node, Channel(there, Access.READ), spread=there.pe)
    here = sender.coord
    dma, channel = machine.node_of(NodeKind.PE_DMA, here), Channel(here, Access.WRITE)
    return device.round_trip(dma, node, channel, here.pe, Traffic.COMMUNICATION), read
