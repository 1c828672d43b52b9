from hypothesis import given
from hypothesis import strategies as st

from tests.machine.shapes import cube_of, machines
from tilewright.machine.coords import Side
from tilewright.machine.spec import (
    CrossbarSpec,
    CubeSpec,
    MachineSpec,
    MeshSpec,
    RingSpec,
    UcieSpec,
)
from tilewright.machine.topology.die import plan_layout
from tilewright.machine.topology.layout import DieLayout, spread_over


def cells(layout: DieLayout, routers: tuple[int, ...]) -> list[tuple[int | None, int | None]]:
    return [(layout.routers[each].name.row, layout.routers[each].name.column) for each in routers]


def test_the_default_die_has_its_pes_in_the_corners_beside_the_hole() -> None:
    layout = plan_layout(CubeSpec())
    assert len(layout.routers) == 32
    assert cells(layout, layout.pe_routers) == [
        *((0, 1), (1, 1)),
        *((0, 4), (1, 4)),
        *((4, 1), (5, 1)),
        *((4, 4), (5, 4)),
    ]


def test_the_default_die_has_m_cpu_and_sram_on_the_nearest_routers() -> None:
    layout = plan_layout(CubeSpec())
    assert cells(layout, (layout.m_cpu_router, layout.sram_router)) == [(0, 2), (3, 0)]


def test_over_the_hole_the_sram_keeps_to_a_free_column_and_the_m_cpu_to_a_free_row() -> None:
    layout = plan_layout(CubeSpec(sram_position_um=(7_000, 1_400), m_cpu_position_um=(0, 7_000)))
    assert cells(layout, (layout.sram_router, layout.m_cpu_router)) == [(0, 1), (1, 0)]


def test_between_equally_near_routers_the_higher_row_counts_then_the_higher_column() -> None:
    layout = plan_layout(CubeSpec(sram_position_um=(2_800, 2_800), m_cpu_position_um=(2_800, 0)))
    assert cells(layout, (layout.sram_router, layout.m_cpu_router)) == [(1, 1), (0, 1)]


def test_the_default_die_has_connections_where_the_hole_does_not_cross() -> None:
    layout = plan_layout(CubeSpec())
    ports = {side: cells(layout, routers) for side, routers in layout.port_routers.items()}
    assert ports == {
        Side.NORTH: [(0, 0), (0, 1), (0, 4), (0, 5)],
        Side.EAST: [(0, 5), (1, 5), (4, 5), (5, 5)],
        Side.SOUTH: [(5, 0), (5, 1), (5, 4), (5, 5)],
        Side.WEST: [(0, 0), (1, 0), (4, 0), (5, 0)],
    }


def test_routers_stand_in_the_middle_of_their_cells() -> None:
    layout = plan_layout(CubeSpec())
    assert layout.routers[0].position_um == (1_400, 1_400)
    assert layout.routers[-1].position_um == (15_400, 15_400)


def test_more_connections_than_free_rows_share_routers_evenly() -> None:
    cube = cube_of(4, MeshSpec(rows=4, columns=4), None)
    layout = plan_layout(cube.model_copy(update={"ucie": UcieSpec(connections=6)}))
    rows = [row for row, _ in cells(layout, layout.port_routers[Side.EAST])]
    assert rows == [0, 0, 0, 3, 3, 3]


def test_remaining_pes_go_to_the_first_corners() -> None:
    layout = plan_layout(cube_of(6, MeshSpec(), 4))
    assert cells(layout, layout.pe_routers) == [(0, 1), (1, 1), (0, 4), (1, 4), (4, 1), (4, 4)]


@given(spec=machines(most_sips=1, most_cubes=1, most_pes=8))
def test_a_die_seats_as_many_pes_as_the_spec_allows(spec: MachineSpec) -> None:
    noc = spec.cube.noc
    if isinstance(noc, MeshSpec):
        full = plan_layout(spec.cube.model_copy(update={"pes": noc.pe_routers}))
        assert len(set(full.pe_routers)) == noc.pe_routers


@given(spec=machines(most_sips=1, most_cubes=1, most_pes=8))
def test_no_two_pes_share_a_router_unless_there_is_only_one(spec: MachineSpec) -> None:
    layout = plan_layout(spec.cube)
    if not isinstance(spec.cube.noc, CrossbarSpec):
        assert len(set(layout.pe_routers)) == spec.cube.pes
    assert len(layout.pe_routers) == spec.cube.pes


@given(spec=machines(most_sips=1, most_cubes=1, most_pes=8), data=st.data())
def test_a_path_goes_along_wires_and_visits_no_router_twice(
    spec: MachineSpec, data: st.DataObject
) -> None:
    layout = plan_layout(spec.cube)
    senders = (*layout.pe_routers, layout.m_cpu_router)
    one = data.draw(st.sampled_from(senders))
    other = data.draw(st.sampled_from((*senders, layout.sram_router)))
    wires = set(layout.wires)
    at, visited = one, [one]
    for router, sublevel in layout.path(one, other):
        assert (at, router) in wires or (router, at) in wires
        assert 0 <= sublevel < layout.num_sublevels
        visited.append(router)
        at = router
    assert at == other
    assert len(set(visited)) == len(visited)


@given(num_items=st.integers(1, 40), num_seats=st.integers(1, 40))
def test_items_are_spread_evenly_and_in_order(num_items: int, num_seats: int) -> None:
    seats = spread_over(range(num_seats), num_items)
    assert len(seats) == num_items
    assert list(seats) == sorted(seats)
    assert all(0 <= seat < num_seats for seat in seats)
    counts = [seats.count(seat) for seat in range(num_seats)]
    assert max(counts) - min(counts) <= 1


def test_a_ring_is_drawn_as_a_square() -> None:
    layout = plan_layout(cube_of(4, RingSpec(routers=8, pitch_um=1_000), 1))
    assert [place.position_um for place in layout.routers] == [
        *((500, 0), (1_500, 0)),
        *((2_000, 500), (2_000, 1_500)),
        *((1_500, 2_000), (500, 2_000)),
        *((0, 1_500), (0, 500)),
    ]
