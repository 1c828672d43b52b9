"""A die with a ring or a crossbar: the network in the middle, what sits on it all around."""

from collections.abc import Iterator, Sequence

from tilewright.machine.build import Machine
from tilewright.machine.coords import Side
from tilewright.machine.spec import CubeSpec, RingSpec
from tilewright.machine.topology.die import plan_layout
from tilewright.report.format import rate_text
from tilewright.report.machine_svg.style import (
    M_CPU_TILE,
    PCIE_TILE,
    SRAM_TILE,
    WIRE,
    BlockKind,
    Tile,
    draw_block,
    draw_hbm,
    draw_lines,
    draw_tile,
    tiles_of_pe,
)
from tilewright.report.svg import Box, Svg
from tilewright.units import count_text, format_ps

SIDES = (Side.NORTH, Side.EAST, Side.SOUTH, Side.WEST)
DEPTH = 22  # of one block of a seat, away from the network
LEAST_WIDTH = 3  # below that the seats are only counted


Seat = tuple[Tile, ...]
"""Blocks that share a place, from the network outward."""


def draw_round_die(svg: Svg, die: Box, machine: Machine) -> None:
    inner = die.inset(2 * DEPTH + 8)
    if isinstance(machine.spec.cube.noc, RingSpec):
        _draw_ring(svg, die, inner, machine)
    else:
        _draw_crossbar(svg, die, inner, machine)


def _draw_ring(svg: Svg, die: Box, inner: Box, machine: Machine) -> None:
    num = len(machine.routes.topology.die.layout.routers)
    places = _ring_places(machine.spec.cube, inner)
    widest = inner.width / -(-num // 4)
    seats = _ring_seats(machine)
    if widest / max(len(some) for some in seats) < LEAST_WIDTH:
        draw_lines(svg, inner, (count_text(num, "router"), "too many to draw"), size=13)
        return
    for router, some in enumerate(seats):
        side, (x, y) = _side_of(places[router], inner), places[router]
        along = x if side in (Side.NORTH, Side.SOUTH) else y
        low = die.x if side in (Side.NORTH, Side.SOUTH) else die.y
        start = min(max(along - widest / 2, low), low + die.width - widest)
        _draw_seats(svg, inner, side, (start, widest), some, towards=places[router])
    svg.line((*places, places[0]), stroke=WIRE, width=2)
    for router, (x, y) in enumerate(places):
        half = min(8.0, widest / 5)
        box = Box(x - half, y - half, 2 * half, 2 * half)
        draw_block(svg, box, BlockKind.ROUTER, tip=f"ring{router}")
    draw_hbm(svg, inner.inset(inner.width / 4), machine)


def _draw_crossbar(svg: Svg, die: Box, inner: Box, machine: Machine) -> None:
    noc = machine.spec.cube.noc
    sides = _crossbar_sides(machine)
    most = max(map(len, sides.values()))
    middle = inner.inset(8)
    if middle.width / most < LEAST_WIDTH:
        seats = sum(map(len, sides.values()))
        draw_lines(svg, die.inset(4), (f"{seats} ports", "too many to draw"), size=13)
        return
    for side, seats_of_side in sides.items():
        span = (middle.x if side in (Side.NORTH, Side.SOUTH) else middle.y, middle.width)
        _draw_seats(svg, inner, side, span, seats_of_side, towards=None)
    draw_block(svg, middle, BlockKind.SWITCH, tip="xbar")
    rate = f"{rate_text(noc.attach_bytes_per_us)} a port, {format_ps(noc.router_ps)}"
    upper, lower = Box(middle.x, middle.y, middle.width, 60), middle.inset(60)
    draw_lines(svg, upper, ("crossbar", rate), size=14)
    draw_hbm(svg, Box(lower.x, lower.y + 12, lower.width, lower.height), machine)


def _ring_places(cube: CubeSpec, inner: Box) -> list[tuple[float, float]]:
    """The layout's square, as large as the box; a pitch of nothing still has a shape."""
    noc = cube.noc.model_copy(update={"pitch_um": 8_000})
    routers = plan_layout(cube.model_copy(update={"noc": noc})).routers
    side = len(routers) * 8_000 / 4
    scale = inner.width / side
    return [
        (inner.x + x * scale, inner.y + y * scale)
        for x, y in (each.position_um for each in routers)
    ]


def _side_of(place: tuple[float, float], inner: Box) -> Side:
    x, y = place
    if abs(y - inner.y) < 0.01:
        return Side.NORTH
    if abs(x - inner.right) < 0.01:
        return Side.EAST
    return Side.SOUTH if abs(y - inner.bottom) < 0.01 else Side.WEST


def _processors(machine: Machine) -> Iterator[Seat]:
    yield (M_CPU_TILE,)
    if machine.spec.sip.io is None:
        yield (Tile(BlockKind.PROCESSOR, ("IO CPU", "IO"), "io_cpu"),)
        yield (PCIE_TILE,)


def _connection(side: Side, index: int) -> Seat:
    name = f"ucie-{side.value}.conn{index}"
    return (Tile(BlockKind.PORT, (f"{side.value}{index}", side.value), name),)


def _ring_seats(machine: Machine) -> list[list[Seat]]:
    """Of each router."""
    layout = machine.routes.topology.die.layout
    seats: list[list[Seat]] = [[] for _ in layout.routers]
    for pe, router in enumerate(layout.pe_routers):
        seats[router].append(tiles_of_pe(pe))
    for side, routers in layout.port_routers.items():
        for index, router in enumerate(routers):
            seats[router].append(_connection(side, index))
    seats[layout.m_cpu_router] += _processors(machine)
    seats[layout.sram_router].append((SRAM_TILE,))
    return seats


def _crossbar_sides(machine: Machine) -> dict[Side, list[Seat]]:
    """PEs clockwise from the north-west, in each side's middle its connections."""
    cube = machine.spec.cube
    sides: dict[Side, list[Seat]] = {}
    num_connections = cube.ucie.connections if cube.ucie else 0
    others = {
        side: [_connection(side, index) for index in range(num_connections)] for side in SIDES
    }
    others[Side.NORTH] += _processors(machine)
    others[Side.WEST].append((SRAM_TILE,))
    counts = _level(cube.pes, [len(others[side]) for side in SIDES])
    first = 0
    for side, count in zip(SIDES, counts, strict=True):
        seats: list[Seat] = [tiles_of_pe(pe) for pe in range(first, first + count)]
        first += count
        if side in (Side.SOUTH, Side.WEST):
            seats.reverse()
        half = count // 2
        sides[side] = seats[:half] + others[side] + seats[half:]
    return sides


def _level(items: int, heights: Sequence[int]) -> list[int]:
    """How many items go on each pile, so that all become as high as each other."""
    counts = [0] * len(heights)
    for _ in range(items):
        lowest = min(range(len(heights)), key=lambda pile: heights[pile] + counts[pile])
        counts[lowest] += 1
    return counts


def _draw_seats(
    svg: Svg,
    inner: Box,
    side: Side,
    span: tuple[float, float],
    seats: Sequence[Seat],
    *,
    towards: tuple[float, float] | None,
) -> None:
    """Seats beside each other along a span outside of a box, with wires to a point or inward."""
    start, length = span
    width = min(34.0, length / max(1, len(seats)))
    first = start + (length - width * len(seats)) / 2
    for index, seat in enumerate(seats):
        boxes = [_tile_box(inner, side, first + index * width, width, layer) for layer in (0, 1)]
        x, y = boxes[0].middle
        step = side.step
        target = towards or (x - step[0] * (DEPTH / 2 + 30), y - step[1] * (DEPTH / 2 + 30))
        svg.line(((x, y), target), stroke=seat[0].kind.stroke)
        for box, tile in zip(boxes, seat, strict=False):
            draw_tile(svg, box, tile)


def _tile_box(inner: Box, side: Side, along: float, width: float, layer: int) -> Box:
    """A tile's box; layer 0 is next to the network."""
    margin = min(0.75, width / 10)
    away = 10 + layer * (DEPTH - 3)
    depth = DEPTH - 4
    match side:
        case Side.NORTH:
            box = Box(along, inner.y - away - depth, width, depth)
        case Side.SOUTH:
            box = Box(along, inner.bottom + away, width, depth)
        case Side.WEST:
            box = Box(inner.x - away - depth, along, depth, width)
        case Side.EAST:
            box = Box(inner.right + away, along, depth, width)
    return Box(box.x + margin, box.y + margin, box.width - 2 * margin, box.height - 2 * margin)
