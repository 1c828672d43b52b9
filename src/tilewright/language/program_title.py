"""What messages call a program, also when its PE has gone on to the next one."""

from typing import NamedTuple

__all__ = ("ProgramTitle",)


class ProgramTitle(NamedTuple):
    """Its place in the grid, its kernel and its PE."""

    ids: tuple[int, ...]
    kernel: str
    pe: str

    def __str__(self) -> str:
        return f"program {self.ids} of {self.kernel} on {self.pe}"
