"""Ready programs of `run`, one a file, and the table of them."""

from tilewright.benches.programs.contract import build_programs

__all__ = ("PROGRAMS",)

PROGRAMS = build_programs(())
