"""Machines around presets, as users change them: any field of the schema over its range."""

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, get_args, get_origin

from annotated_types import Ge, Le
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from tilewright.machine.file.schema import child_types
from tilewright.machine.spec import MachineSpec
from tilewright.machine.spec.field import Spec

BASES = (
    ("ahbm-small",),
    ("ahbm-small", "sip.count=2"),
    ("ahbm-small", "sip.columns=1", "sip.rows=1", "sip.count=2"),
    ("ahbm-small", "cube.noc.kind=crossbar"),
    ("ahbm-small", "cube.noc.kind=ring", "sip.count=3", "fabric.kind=torus"),
    ("ahbm-small", "pe.gemm.kind=systolic", "cube.hbm.model=simple"),
    ("crossbar-chip", "cube.pes=4", "cube.hbm.pseudo_channels=8", "cube.hbm.capacity_bytes=1 GiB"),
    ("hbm3", "sip.count=1", "sip.columns=2", "sip.rows=1"),
)
FEW = {  # counts that decide how large a machine is
    "sip.count": 4,
    "sip.columns": 3,
    "sip.rows": 3,
    "cube.pes": 8,
    "cube.noc.rows": 7,
    "cube.noc.columns": 7,
    "cube.noc.routers": 12,
    "cube.ucie.connections": 8,
    "fabric.links": 12,
}
UNDRAWN = ("name", "description", "routing", "impl", "parameters")  # no machine of its own
MAP = ("bank_group", "column", "bank", "stack_id", "row")

Draw = st.DrawFn
Values = st.SearchStrategy[str]


class Leaf(NamedTuple):
    """A field of the schema that is no section, and the texts that it may have."""

    path: str
    values: Values


def leaves(spec_type: type[Spec] = MachineSpec, prefix: str = "") -> Iterator[Leaf]:
    """Return all fields, those of every kind of a section included."""
    for key, field in spec_type.model_fields.items():
        path = prefix + key
        sections = child_types(spec_type, key)
        if sections and type(None) in get_args(field.annotation):
            yield Leaf(path, st.just("null"))
        for section in sections:
            yield from leaves(section, f"{path}.")
        if not sections and key not in UNDRAWN:
            yield Leaf(path, _values(path, field))


def _values(path: str, field: FieldInfo) -> Values:
    kind = field.annotation
    if path == "cube.hbm.address_map":
        return st.permutations(MAP).map(lambda rest: f"[burst, {', '.join(rest)}]")
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind)).map(str)
    if get_origin(kind) is tuple:
        return st.tuples(*[st.integers(0, 30_000)] * 2).map(lambda place: str(list(place)))
    if path in FEW:
        return st.integers(1, FEW[path]).map(str)
    low, high = _bounds(field)
    near = field.default if isinstance(field.default, int) else 16
    scaled = st.integers(-6, 6).map(lambda power: int(near * 2.0**power))
    ends = st.sampled_from((low, low + 1, 2, 3, high // 2, high))
    powers = st.integers(0, high.bit_length() - 1).map(lambda power: 1 << power)
    anything = st.one_of(scaled, ends, powers, st.integers(low, high))
    return anything.map(lambda number: str(min(high, max(low, number))))


def _bounds(field: FieldInfo) -> tuple[int, int]:
    found: list[Any] = list(field.metadata)

    def collect(annotation: Any) -> None:
        for note in getattr(annotation, "__metadata__", ()):
            found.extend(note.metadata if isinstance(note, FieldInfo) else (note,))
        for inner in get_args(annotation):
            collect(inner)

    collect(field.annotation)
    lows = [int(str(note.ge)) for note in found if isinstance(note, Ge)]
    highs = [int(str(note.le)) for note in found if isinstance(note, Le)]
    return max(lows, default=1), min(highs, default=2**20)


LEAVES = tuple({leaf.path: leaf for leaf in leaves()}.values())


@st.composite
def _small_tcms(draw: Draw) -> tuple[str, ...]:
    reserved = draw(st.sampled_from((1024, 2048, 65_536)))
    usable = draw(st.integers(12 * 2**10, 128 * 2**10))
    registers = draw(st.sampled_from((1024, 4096, 65_536)))
    return (
        f"pe.tcm.reserved_bytes={reserved}",
        f"pe.tcm.capacity_bytes={reserved + usable}",
        f"pe.registers.capacity_bytes={registers}",
    )


@st.composite
def _memories(draw: Draw) -> tuple[str, ...]:
    powers = {
        "banks": (0, 5), "bank_groups": (0, 3), "stack_ids": (0, 3),
        "row_bytes": (5, 14), "burst_bytes": (4, 9), "interleave_bytes": (4, 11),
    }  # fmt: skip
    shape = [f"cube.hbm.{name}={2 ** draw(st.integers(*ends))}" for name, ends in powers.items()]
    return (*shape, f"cube.hbm.read_queue_bursts={draw(st.integers(1, 80))}")


@st.composite
def _queues(draw: Draw) -> tuple[str, ...]:
    window = draw(st.sampled_from((1024, 2048, 4096)))
    return (
        f"pe.queue_commands={draw(st.integers(1, 5))}",
        f"pe.dma.in_flight_bytes={window}",
        f"pe.dma.read_channels={draw(st.integers(1, 5))}",
        f"sip.count={draw(st.integers(1, 3))}",
    )


@st.composite
def _dies(draw: Draw) -> tuple[str, ...]:
    pes = draw(st.sampled_from((1, 2, 4, 8)))
    hole = draw(st.integers(0, 2))
    return (
        f"cube.pes={pes}",
        f"cube.hbm.pseudo_channels={pes * 2 ** draw(st.integers(0, 3))}",
        "cube.hbm.capacity_bytes=1 GiB",
        f"cube.noc.rows={draw(st.integers(1, 7))}",
        f"cube.noc.columns={draw(st.integers(1, 7))}",
        f"cube.noc.hole_rows={hole}",
        f"cube.noc.hole_columns={hole}",
    )


@st.composite
def _wires(draw: Draw) -> tuple[str, ...]:
    return (
        f"packet_bytes={draw(st.sampled_from((64, 192, 256, 1024, 2048, 4096)))}",
        f"flit_bytes={draw(st.sampled_from((1, 8, 32, 64, 128)))}",
        f"cube.noc.buffer_bytes={draw(st.sampled_from((1024, 4096, 5000)))}",
    )


TOGETHER: tuple[Callable[[], st.SearchStrategy[tuple[str, ...]]], ...] = (
    _small_tcms,
    _memories,
    _queues,
    _dies,
    _wires,
)
"""Fields whose values only fit together, so that one alone is refused nearly always."""


@st.composite
def drawn_machines(draw: Draw) -> tuple[str, tuple[str, ...]]:
    """Return a preset and changes to it, as ``--set`` takes them; many of them are refused."""
    preset, *changes = draw(st.sampled_from(BASES))
    if draw(st.booleans()):
        changes += draw(draw(st.sampled_from(TOGETHER))())
    for leaf in draw(st.lists(st.sampled_from(LEAVES), min_size=1, max_size=4)):
        changes.append(f"{leaf.path}={draw(leaf.values)}")
    return preset, tuple(changes)
