"""Mapping plans on the tables of a small machine: who sees which copy, and nothing stays behind."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import RegistryError
from tilewright.machine.coords import PeCoord
from tilewright.memory import (
    MappingPlan,
    MapTarget,
    PageTable,
    PhysicalByte,
    RangeMapping,
    ShardRange,
    Sight,
    VirtualByte,
    VirtualRange,
    plan_mapping,
)
from tilewright.memory.mapping import num_entries

PES = [PeCoord(*place) for place in product(range(2), range(3), range(2))]
Tables = dict[PeCoord, PageTable]


def new_tables() -> Tables:
    return {coord: PageTable(str(coord), 16) for coord in PES}


def virtual(first: int, num_bytes: int = 2) -> VirtualRange:
    return VirtualRange(VirtualByte(first), num_bytes)


def shard(home: PeCoord, first: int, num_bytes: int = 2) -> ShardRange:
    """Physical bytes tell homes apart."""
    physical = 1000 * PES.index(home) + first
    return ShardRange(home, RangeMapping(virtual(first, num_bytes), PhysicalByte(physical)))


def seen_at(table: PageTable, address: int) -> int | None:
    """The physical byte of a virtual one."""
    for one in table.mappings:
        if one.virtual.first <= address < one.virtual.end:
            return one.physical + address - one.virtual.first
    return None


def install(tables: Tables, plan: MappingPlan) -> None:
    for message in plan.map_messages():
        for coord in filter(message.target.has, PES):
            tables[coord].map(message.mappings)


def remove(tables: Tables, plan: MappingPlan) -> None:
    for message in plan.unmap_messages():
        for coord in filter(message.target.has, PES):
            tables[coord].unmap(message.ranges)


@st.composite
def shard_lists(draw: st.DrawFn, base: int = 0) -> list[ShardRange]:
    """Ranges of two bytes, each in any set of PEs."""
    homes = draw(st.lists(st.sets(st.sampled_from(PES), max_size=5), min_size=1, max_size=4))
    return [
        shard(home, base + 2 * number)
        for number, places in enumerate(homes)
        for home in sorted(places)
    ]


def seen_by(
    coord: PeCoord, first: int, shards: list[ShardRange], *, in_all_cubes: bool
) -> int | None:
    """The rule, for one PE and one byte: its own copy, its cube's only one, its SIP's only one."""
    near = [one for one in shards if one.home.sip == coord.sip]
    copies = [one for one in near if one.mapping.virtual.first == first]
    own = [one for one in copies if one.home == coord]
    in_cube = [one for one in copies if one.home.cube == coord.cube]
    is_split = len({one.home for one in near}) > 1
    is_told = any(one.home.cube == coord.cube for one in near) or (in_all_cubes and is_split)
    for some in (own, in_cube, copies if not in_cube and is_told else []):
        if len(some) == 1:
            return some[0].mapping.physical
    return None


@given(shards=shard_lists(), in_all_cubes=st.booleans())
def test_each_pe_sees_its_own_copy_or_the_only_one_near_it(
    shards: list[ShardRange], in_all_cubes: bool
) -> None:
    tables = new_tables()
    install(tables, plan_mapping("t", shards, cubes=range(3) if in_all_cubes else ()))
    for coord, table in tables.items():
        for first in range(0, 8, 2):
            expected = seen_by(coord, first, shards, in_all_cubes=in_all_cubes)
            assert seen_at(table, first) == expected
            if expected is not None:
                assert seen_at(table, first + 1) == expected + 1


def nearest(coord: PeCoord, first: int, shards: list[ShardRange]) -> int | None:
    """The rule of full sight: own copy, the cube's, the SIP's, any; the same number before others.

    Nobody outside the tensor's PEs is promised anything.
    """
    copies = [one for one in shards if one.mapping.virtual.first == first]
    for is_near in (
        lambda home: home == coord,
        lambda home: home.cube_coord == coord.cube_coord,
        lambda home: (home.sip, home.pe) == (coord.sip, coord.pe),
        lambda home: home.sip == coord.sip,
        lambda home: (home.cube, home.pe) == (coord.cube, coord.pe),
        lambda home: home.cube == coord.cube,
        lambda home: home.pe == coord.pe,
        lambda _: True,
    ):
        near = [one for one in copies if is_near(one.home)]
        if near:
            return near[0].mapping.physical
    return None


@given(shards=shard_lists())
def test_with_full_sight_each_pe_of_a_tensor_sees_the_nearest_copy_of_all(
    shards: list[ShardRange],
) -> None:
    tables = new_tables()
    install(tables, plan_mapping("t", shards, Sight.ALL))
    for coord in {one.home for one in shards}:
        for first in range(0, 8, 2):
            assert seen_at(tables[coord], first) == nearest(coord, first, shards)


@given(shards=shard_lists())
def test_with_its_own_sight_a_pe_sees_what_it_has(shards: list[ShardRange]) -> None:
    tables = new_tables()
    install(tables, plan_mapping("t", shards, Sight.OWN))
    for coord, table in tables.items():
        own = tuple(one.mapping for one in shards if one.home == coord)
        assert table.mappings == own


def test_with_its_own_sight_bytes_of_several_pes_may_overlap() -> None:
    plan = plan_mapping("t", [shard(PES[0], 0, 3), shard(PES[1], 2, 3)], Sight.OWN)
    tables = new_tables()
    install(tables, plan)
    assert [seen_at(tables[pe], 2) for pe in PES[:3]] == [2, 1002, None]
    remove(tables, plan)
    assert not any(map(len, tables.values()))


def test_with_full_sight_a_split_tensor_takes_one_message_a_sip() -> None:
    shards = [shard(home, 2 * number) for number, home in enumerate(PES)]
    messages = plan_mapping("t", shards, Sight.ALL).map_messages()
    assert [message.target for message in messages] == [
        MapTarget(0, (0, 1, 2)),
        MapTarget(1, (0, 1, 2)),
    ]
    assert {len(message.mappings) for message in messages} == {12}


def test_with_full_sight_copies_in_one_cube_serve_the_pes_of_their_number() -> None:
    shards = [shard(home, 2 * home.cube) for home in PES if home.sip == 0]
    messages = plan_mapping("t", shards, Sight.ALL).map_messages()
    assert [message.target for message in messages] == [
        MapTarget(0, (0, 1, 2), pe) for pe in range(2)
    ]


@given(data=st.data(), sight=st.sampled_from(Sight))
def test_plans_come_and_go_in_any_order_and_nothing_stays_behind(
    data: st.DataObject, sight: Sight
) -> None:
    plans = [
        plan_mapping(f"t{number}", data.draw(shard_lists(base=100 * number)), sight)
        for number in range(3)
    ]
    tables = new_tables()
    for plan in data.draw(st.permutations(plans)):
        install(tables, plan)
    kept, *gone = data.draw(st.permutations(plans))
    for plan in gone:
        remove(tables, plan)
    alone = new_tables()
    install(alone, kept)
    assert {c: t.mappings for c, t in tables.items()} == {c: t.mappings for c, t in alone.items()}
    remove(tables, kept)
    assert not any(map(len, tables.values()))


@given(shards=shard_lists(), sight=st.sampled_from(Sight))
def test_unmapping_mirrors_mapping_message_by_message(
    shards: list[ShardRange], sight: Sight
) -> None:
    plan = plan_mapping("t", shards, sight)
    there, back = plan.map_messages(), plan.unmap_messages()
    assert [message.target for message in back] == [message.target for message in there[::-1]]
    for forth, undo in zip(there, reversed(back), strict=True):
        assert undo.ranges[::-1] == forth.ranges


def test_a_split_tensor_takes_one_message_a_sip_to_cubes_with_a_shard_or_to_all() -> None:
    homes = [coord for coord in PES if coord.cube != 1]
    shards = [shard(home, 2 * number) for number, home in enumerate(homes)]
    targets = [message.target for message in plan_mapping("t", shards).map_messages()]
    assert targets == [MapTarget(0, (0, 2)), MapTarget(1, (0, 2))]
    everywhere = plan_mapping("t", shards, cubes=range(3)).map_messages()
    assert [message.target for message in everywhere] == [
        MapTarget(0, (0, 1, 2)),
        MapTarget(1, (0, 1, 2)),
    ]


def test_a_tensor_on_one_pe_goes_to_the_pes_of_its_cube_alone() -> None:
    (message,) = plan_mapping("t", [shard(PES[3], 0)], cubes=range(3)).map_messages()
    assert message.target == MapTarget(PES[3].sip, (PES[3].cube,))


def test_a_tensor_replicated_over_cubes_takes_one_message_a_cube() -> None:
    shards = [shard(home, 2 * home.pe) for home in PES]
    plan = plan_mapping("t", shards)
    assert [message.target for message in plan.map_messages()] == [
        MapTarget(sip, (cube,)) for sip, cube in product(range(2), range(3))
    ]
    assert {len(message.mappings) for message in plan.map_messages()} == {2}


def test_a_tensor_replicated_over_pes_takes_one_message_a_pe() -> None:
    plan = plan_mapping("t", [shard(home, 0) for home in PES])
    assert [message.target for message in plan.map_messages()] == [
        MapTarget(coord.sip, (coord.cube,), coord.pe) for coord in PES
    ]


@pytest.mark.parametrize("sight", Sight)
def test_the_order_of_shards_does_not_matter(sight: Sight) -> None:
    shards = [shard(home, 2 * number) for number, home in enumerate(PES)]
    assert plan_mapping("t", shards, sight) == plan_mapping("t", shards[::-1], sight)


@pytest.mark.parametrize(
    ("sight", "other"), [(Sight.SIP, PES[1]), (Sight.ALL, PES[-1]), (Sight.OWN, PES[0])]
)
def test_ranges_that_overlap_without_being_copies_are_refused(sight: Sight, other: PeCoord) -> None:
    with pytest.raises(RegistryError) as caught:
        plan_mapping("tensor a", [shard(PES[0], 0, 3), shard(other, 2, 3)], sight)
    assert str(caught.value) == (
        "tensor a: found shards of virtual bytes 0x0..0x2 and virtual bytes 0x2..0x4, expected "
        "ranges that are apart, or copies of one; cut shards at the same bytes"
    )


def test_two_copies_in_one_pe_are_refused() -> None:
    with pytest.raises(
        RegistryError, match=r"two copies of virtual bytes 0x0\.\.0x1 in sip0\.cube0\.pe0"
    ):
        plan_mapping("tensor a", [shard(PES[0], 0), shard(PES[0], 0)])


def test_nothing_takes_no_message() -> None:
    assert plan_mapping("t", []).map_messages() == ()


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([], 0),
        ([virtual(0, 16)], 1),
        ([virtual(0, 16), virtual(16, 16)], 2),  # of two PEs: they touch
        ([virtual(3, 4), virtual(7, 4), virtual(11, 30)], 3),  # small shards in one page
        ([virtual(5, 16), virtual(37, 16)], 1),  # blocks of one PE, in pages 0..1 and 2..3
        ([virtual(0, 16), virtual(32, 16)], 2),  # a whole page between them
        ([virtual(32, 4), virtual(0, 4)], 2),
        ([virtual(8, 4), virtual(0, 4)], 1),
    ],
)
def test_a_message_has_an_entry_for_every_run_of_neighbouring_pages(
    ranges: list[VirtualRange], expected: int
) -> None:
    assert num_entries(ranges, page_bytes=16) == expected
