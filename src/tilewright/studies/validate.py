"""The oracles of ``tilewright validate``: those of the benches, and those of what composes them."""

from functools import partial

from tilewright.benches.validate import ORACLES as BENCH_ORACLES
from tilewright.benches.validate import build_table
from tilewright.benches.validate import run_oracles as run_table
from tilewright.studies.advice_oracle import ADVICE

__all__ = ("ORACLES", "run_oracles")

ORACLES = build_table((*BENCH_ORACLES, *ADVICE))

run_oracles = partial(run_table, oracles=ORACLES)
