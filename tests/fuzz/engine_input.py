"""Programs of everything that an engine has: both engines show the same of each."""

from dataclasses import fields
from pathlib import Path

from tests.engine_programs import Outcome, run_program
from tests.fuzz.generator import FindingError, Random
from tests.strategies import Seeded
from tests.whole_programs import whole_program
from tilewright.engine import EngineKind, native_built

__all__ = ("run_engine_program",)

FIRST_SEED = 10**6  # the tests have run those below


def run_engine_program(rng: Random, folder: Path) -> None:
    """Run one program on both engines; whatever a caller can see must be equal."""
    del folder
    seed = rng.randrange(FIRST_SEED, 2**40)
    program = whole_program(Seeded(seed))
    expected = run_program(program, EngineKind.REFERENCE)
    if not native_built():
        return
    found = run_program(program, EngineKind.NATIVE)
    names = [field.name for field in fields(Outcome)]
    differing = [name for name in names if getattr(found, name) != getattr(expected, name)]
    if differing:
        text = f"whole_program(Seeded({seed})): the engines differ in {', '.join(differing)}"
        raise FindingError(text)
