"""Sizes that users set, refused before anything is placed."""

from tilewright.errors import BenchError
from tilewright.programs.team import Team


def check_sizes(where: str, **sizes: int) -> None:
    """Each is at least 1.

    >>> check_sizes("softmax", rows=8, columns=0)
    Traceback (most recent call last):
    tilewright.errors.BenchError: softmax: found columns=0, expected at least 1; set it higher
    """
    for name, size in sizes.items():
        if size < 1:
            raise BenchError(where, f"{name}={size}", "at least 1", "set it higher")


def check_shares(where: str, team: Team, **sizes: int) -> None:
    """Each gives every PE of the team at least one."""
    for name, size in sizes.items():
        if size < team.num_pes:
            found = f"{name}={size} for {team.num_pes} PEs"
            raise BenchError(
                where, found, "at least one for each PE", "set it higher, or pes lower"
            )
