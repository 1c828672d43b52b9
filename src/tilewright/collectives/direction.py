"""Topologies of a world: which rank each direction of a rank leads to."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import isqrt

from tilewright.collectives.kernel import direction_to
from tilewright.collectives.tuning import parse_choice
from tilewright.errors import CollectiveError

Shape = tuple[int | None, int | None]
"""Columns and rows of ranks (w, h); None is not said."""

NOT_SAID: Shape = (None, None)

Named = dict[str, int]
"""Ranks by direction."""

GLOBAL_PREFIX = "global_"


class Topology(Enum):
    """Which directions the ranks of a world have."""

    RING_1D = "ring_1d"  # E is the next rank, W the one before, the last next to the first
    MESH_2D = "mesh_2d"  # E, W, N, S in rows and columns that are open at their ends
    MESH_2D_NO_WRAP = "mesh_2d_no_wrap"  # the same
    TORUS_2D = "torus_2d"  # E, W, N, S in rows and columns that are closed
    TREE_BINARY = "tree_binary"  # parent (r - 1) // 2, child_left 2 r + 1, child_right 2 r + 2
    NONE = "none"  # no names but rankN


@dataclass(frozen=True, slots=True)
class Directions:
    """Directions of each rank and the ranks there, in the order in which ``recv(None)`` takes."""

    by_rank: tuple[tuple[tuple[str, int], ...], ...]

    def aliases(self, rank: int) -> dict[str, str]:
        """Return the second names of a rank's directions: ``rankN`` is the first that leads there.

        >>> Directions(((("E", 1), ("W", 1)), (("E", 0), ("W", 0)))).aliases(0)
        {'rank1': 'E'}
        """
        names: dict[str, str] = {}
        for name, peer in self.by_rank[rank]:
            names.setdefault(direction_to(peer), name)
        return names


def parse_topology(where: str, said: object) -> Topology:
    """Read the name of a topology; raise CollectiveError for any other."""
    return parse_choice(where, f"the topology {said!r}", Topology, said)


def plan_directions(
    where: str,
    topology: Topology,
    num_ranks: int,
    shape: Shape = NOT_SAID,
    *,
    sips: Sequence[int] = (),
    global_topology: Topology = Topology.NONE,
    sip_shape: Shape = NOT_SAID,
) -> Directions:
    """Name the directions of all ranks; a rank is nobody's neighbour in its own direction.

    ``shape`` is columns and rows of a mesh or torus, a square if it is not said. With a
    ``global_topology`` the ranks of a SIP are one ``topology``, and the n-th ranks of all SIPs are
    joined by names that begin with ``global_``; ``sips`` is then the SIP of each rank.

    >>> plan_directions("here", Topology.RING_1D, 3).by_rank[0]
    (('E', 1), ('W', 2))
    """
    is_one = global_topology is Topology.NONE
    groups = [list(range(num_ranks))] if is_one else _by_sip(where, sips)
    found: dict[int, Named] = {}
    for ranks in groups:
        found.update(_named(where, topology, ranks, shape))
    for counterparts in zip(*groups, strict=True):
        for rank, ways in _named(where, global_topology, counterparts, sip_shape).items():
            ways_out = {f"{GLOBAL_PREFIX}{name}": peer for name, peer in ways.items()}
            found.setdefault(rank, {}).update(ways_out)
    return Directions(tuple(tuple(found.get(rank, {}).items()) for rank in range(num_ranks)))


def _by_sip(where: str, sips: Sequence[int]) -> list[list[int]]:
    """Group ranks by SIP, in order; raise CollectiveError if SIPs have different numbers."""
    groups: dict[int, list[int]] = {}
    for rank, sip in enumerate(sips):
        groups.setdefault(sip, []).append(rank)
    sizes = {len(ranks) for ranks in groups.values()}
    if len(sizes) > 1:
        found = f"SIPs with {' and '.join(map(str, sorted(sizes)))} ranks"
        fix = "give each SIP as many ranks, or leave global_topology out"
        raise CollectiveError(where, found, "as many ranks on each SIP", fix)
    return list(groups.values())


def _named(where: str, topology: Topology, ranks: Sequence[int], shape: Shape) -> dict[int, Named]:
    """Directions among some ranks, which are numbered by their order."""
    count = len(ranks)
    match topology:
        case Topology.NONE:
            return {}
        case Topology.RING_1D:
            named = [{"E": (at + 1) % count, "W": (at - 1) % count} for at in range(count)]
        case Topology.TREE_BINARY:
            named = [_tree(at, count) for at in range(count)]
        case Topology.MESH_2D | Topology.MESH_2D_NO_WRAP | Topology.TORUS_2D:
            rows, columns = _shape(where, topology, count, shape)
            is_closed = topology is Topology.TORUS_2D
            named = [_grid(at, rows, columns, is_closed=is_closed) for at in range(count)]
    return {  # without what leads back to the same rank, as in a ring of one
        rank: {name: ranks[peer] for name, peer in named[at].items() if peer != at}
        for at, rank in enumerate(ranks)
    }


def _tree(at: int, count: int) -> Named:
    found = {"parent": (at - 1) // 2} if at else {}
    children = {"child_left": 2 * at + 1, "child_right": 2 * at + 2}
    return found | {name: child for name, child in children.items() if child < count}


def _grid(at: int, rows: int, columns: int, *, is_closed: bool) -> Named:
    row, column = divmod(at, columns)
    steps = {"N": (row - 1, column), "S": (row + 1, column),
             "E": (row, column + 1), "W": (row, column - 1)}  # fmt: skip
    if is_closed:
        return {name: r % rows * columns + c % columns for name, (r, c) in steps.items()}
    return {
        name: r * columns + c
        for name, (r, c) in steps.items()
        if 0 <= r < rows and 0 <= c < columns
    }


def _shape(where: str, topology: Topology, count: int, said: Shape) -> tuple[int, int]:
    """Return rows and columns: as said, a square if nothing is."""
    columns, rows = said
    if columns is None and rows is None:
        columns = rows = isqrt(count)
        problem = f"{count} ranks on a {topology.value} whose rows and columns nobody has said"
    else:
        problem = f"w={columns}, h={rows} for {count} ranks".replace("w=None, ", "")
        problem = problem.replace(", h=None", "")
        columns = columns or count // (rows or 1)
        rows = rows or count // columns
    if rows * columns != count:
        widths = [width for width in range(1, count + 1) if count % width == 0]
        shapes = " or ".join(f"w={width}, h={count // width}" for width in widths)
        fix = f"say the columns and rows, such as {shapes}"
        raise CollectiveError(where, problem, "columns times rows to be all ranks", fix)
    return rows, columns
