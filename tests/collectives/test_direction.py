"""Topologies of worlds: where directions lead, and that what leaves comes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.collectives.direction import Directions, Topology, parse_topology, plan_directions
from tilewright.errors import CollectiveError
from tilewright.executor.neighbour import OPPOSITES

WHERE = "test"


def by_name(directions: Directions, rank: int) -> dict[str, int]:
    return dict(directions.by_rank[rank])


@pytest.mark.parametrize(
    ("topology", "size", "shape", "rank", "expected"),
    [
        ("ring_1d", 5, (None, None), 0, {"E": 1, "W": 4}),
        ("ring_1d", 2, (None, None), 1, {"E": 0, "W": 0}),
        ("ring_1d", 1, (None, None), 0, {}),
        ("mesh_2d", 6, (3, 2), 1, {"E": 2, "W": 0, "S": 4}),
        ("mesh_2d_no_wrap", 6, (3, None), 5, {"N": 2, "W": 4}),
        ("torus_2d", 6, (3, 2), 2, {"N": 5, "S": 5, "E": 0, "W": 1}),
        ("torus_2d", 4, (None, None), 0, {"N": 2, "S": 2, "E": 1, "W": 1}),
        ("torus_2d", 3, (3, 1), 0, {"E": 1, "W": 2}),
        ("tree_binary", 7, (None, None), 1, {"parent": 0, "child_left": 3, "child_right": 4}),
        ("tree_binary", 4, (None, None), 1, {"parent": 0, "child_left": 3}),
        ("none", 4, (None, None), 0, {}),
    ],
)
def test_directions_lead_to_neighbours(
    topology: str,
    size: int,
    shape: tuple[int | None, int | None],
    rank: int,
    expected: dict[str, int],
) -> None:
    directions = plan_directions(WHERE, parse_topology(WHERE, topology), size, shape)
    assert by_name(directions, rank) == expected


@given(
    topology=st.sampled_from(Topology),
    columns=st.integers(1, 5),
    rows=st.integers(1, 5),
    num_sips=st.integers(1, 4),
    global_topology=st.sampled_from([Topology.NONE, Topology.RING_1D, Topology.MESH_2D_NO_WRAP]),
)
def test_what_leaves_by_a_direction_comes_back_by_its_opposite(
    topology: Topology, columns: int, rows: int, num_sips: int, global_topology: Topology
) -> None:
    size = columns * rows
    if global_topology is Topology.NONE:
        num_sips = 1
    directions = plan_directions(
        WHERE, topology, size * num_sips, (columns, rows),
        sips=[rank // size for rank in range(size * num_sips)],
        global_topology=global_topology, sip_shape=(num_sips, 1),
    )  # fmt: skip
    for rank, named in enumerate(directions.by_rank):
        for name, peer in named:
            assert peer != rank
            assert name.startswith("global_") == (peer // size != rank // size)
            back = by_name(directions, peer)
            assert rank in [back.get(opposite) for opposite in OPPOSITES[name]]


def test_global_names_join_the_same_rank_of_all_sips() -> None:
    sips = [0, 0, 1, 1, 2, 2]
    directions = plan_directions(
        WHERE, Topology.RING_1D, 6, sips=sips, global_topology=Topology.RING_1D
    )
    assert by_name(directions, 3) == {"E": 2, "W": 2, "global_E": 5, "global_W": 1}
    assert directions.aliases(3) == {"rank2": "E", "rank5": "global_E", "rank1": "global_W"}
    with pytest.raises(CollectiveError, match=r"SIPs with 1 and 2 ranks, expected as many ranks"):
        plan_directions(WHERE, Topology.NONE, 3, sips=[0, 0, 1], global_topology=Topology.RING_1D)


@pytest.mark.parametrize(
    ("size", "shape", "message"),
    [
        (6, (None, None), r"6 ranks on a torus_2d whose .*such as w=1, h=6 or w=2, h=3"),
        (6, (4, None), r"found w=4 for 6 ranks, expected columns times rows to be all ranks"),
        (6, (2, 2), r"found w=2, h=2 for 6 ranks"),
    ],
)
def test_ranks_that_fill_no_rows_and_columns_are_refused(
    size: int, shape: tuple[int | None, int | None], message: str
) -> None:
    with pytest.raises(CollectiveError, match=message):
        plan_directions(WHERE, Topology.TORUS_2D, size, shape)


def test_a_topology_that_nobody_knows_is_refused() -> None:
    with pytest.raises(
        CollectiveError, match=r"the topology 'star', expected one of ring_1d, mesh"
    ):
        parse_topology(WHERE, "star")
