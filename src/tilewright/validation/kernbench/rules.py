"""KernBench programs as their users have them: what they compute beside NumPy in float64."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np

from tilewright.engine import EngineKind
from tilewright.host import RuntimeContext
from tilewright.interop.kernbench.loading import KernbenchProgram
from tilewright.interop.kernbench.topology import resolve_topology
from tilewright.machine.build import Machine
from tilewright.programs.contract import row_error, tolerance_of
from tilewright.validation.engine_run import machine_named
from tilewright.validation.finding import Finding, Row, at_most
from tilewright.validation.kernbench import values

PROGRAM_FILES = Path(__file__).parent / "programs"
"""Program files, topologies and configurations as they lie on the disk of a KernBench user."""


@dataclass(frozen=True, slots=True)
class ProgramCase:
    """A program file, its results in NumPy, and what it needs around it.

    A file with several benches is named with one, as ``products.py::qkv_rows``.
    """

    source: str
    form: values.Form
    dtype: str = "f16"  # whose tolerance holds
    topology: str | None = None  # the machine, as a topology file; None is ahbm-small
    beside: Mapping[str, str] = field(default_factory=dict)  # by the name beside the program

    @property
    def file(self) -> str:
        return self.source.partition("::")[0]


def run_case(case: ProgramCase, kind: EngineKind, *, sanitize: bool = False) -> values.Results:
    """Run a program in a directory that has its files, and return what it keeps in ``RESULTS``.

    With ``sanitize`` races and wrong accesses raise SanitizerError.
    """

    def build_host(machine: Machine) -> RuntimeContext:
        return contexts.enter_context(RuntimeContext(machine, engine=kind, sanitize=sanitize))

    with ExitStack() as contexts, TemporaryDirectory() as directory:
        file = Path(directory) / case.file
        for name, source in {case.file: case.file, **case.beside}.items():
            copyfile(PROGRAM_FILES / source, file.with_name(name))
        program = KernbenchProgram(file, file.read_bytes(), build_host)
        bench = case.source.partition("::")[2] or None
        machine = machine_named("ahbm-small")
        if case.topology is not None:
            machine = resolve_topology(PROGRAM_FILES / case.topology).machine
        program.run(build_host(machine), {}, bench)
        results: values.Results = program.module.RESULTS
        return results


def check_values(kind: EngineKind, *, case: ProgramCase) -> Finding:
    """Return the greatest error of a program's results, relative to the norm of a row."""
    results = run_case(case, kind)
    errors = [error_of(results[name], wanted) for name, wanted in case.form(results).items()]
    limit = Fraction(str(tolerance_of(case.dtype)))
    return at_most(limit, min(1.0, max(errors)), "of a row's norm")


def error_of(found: Any, wanted: Any) -> float:
    """Return the error of a result; one that is no array is right, or wrong as a whole."""
    if isinstance(found, dict):
        found = [found[rank] for rank in sorted(found)]
    if isinstance(wanted, np.ndarray):
        return row_error(np.asarray(found), wanted)
    return 0.0 if found == wanted else 1.0


ONE_CUBE, TWO_CUBES, TWO_SIPS = "one_cube.yaml", "two_cubes.yaml", "two_sips.yaml"


def _product(name: str) -> ProgramCase:
    """Return a bench of the products."""
    return ProgramCase(f"products.py::{name}", values.product)


def _reduce(configuration: str, topology: str = ONE_CUBE, **beside: str) -> ProgramCase:
    """Return the all-reduce program with a configuration as its ccl.yaml."""
    files = {"ccl.yaml": configuration, **beside}
    return ProgramCase("allreduce.py", values.reduced_tiles, topology=topology, beside=files)


def _on_sips(file: str, form: values.Form) -> ProgramCase:
    """Return a program with a worker for each of two SIPs."""
    beside = {"ccl.yaml": "ccl_sips.yaml"}
    return ProgramCase(file, form, topology=TWO_SIPS, beside=beside)


PROGRAMS: Mapping[str, ProgramCase] = MappingProxyType(
    {
        "KB1 GEMM of one PE, both operands streamed": _product("gemm_single_pe"),
        "KB2 GEMM of one PE, both operands loaded": _product("gemm_load_load"),
        "KB3 QKV, columns by program_id": _product("qkv_columns"),
        "KB4 QKV, rows by program_id": _product("qkv_rows"),
        "KB5 GPT-3 QKV over cubes and PEs": _product("gpt3_qkv"),
        "KB6 virtual addresses, shards of others": ProgramCase(
            "va_offset_verify.py", values.moved_bytes
        ),
        "KB7 composite, epilogues of three scopes": ProgramCase(
            "composite_epilogue.py", values.epilogues
        ),
        "KB8 all-reduce, ring in TCM, 8 PEs": _reduce("ccl_ring_tcm.yaml"),
        "KB9 all-reduce, ring in HBM, 8 PEs": _reduce("ccl_ring_hbm.yaml"),
        "KB10 all-reduce, ring in SRAM, 8 PEs": _reduce("ccl_ring_sram.yaml"),
        "KB11 all-reduce, ring over two cubes": _reduce("ccl_multi_cube.yaml", TWO_CUBES),
        "KB12 all-reduce, mesh of 2 x 2": _reduce("ccl_mesh.yaml"),
        "KB13 all-reduce, binary tree of 7": _reduce("ccl_tree.yaml"),
        "KB14 all-reduce, a user's algorithm": _reduce(
            "ccl_own.yaml", **{"two_way_allreduce.py": "two_way_allreduce.py"}
        ),
        "KB15 rings by hand, sent by direction": ProgramCase(
            "neighbour_shift.py",
            values.shifted,
            topology=ONE_CUBE,
            beside={"ccl.yaml": "ccl_ring_tcm.yaml"},
        ),
        "KB16 DDP, one group before the workers": _on_sips(
            "ddp.py::launcher", values.reduced_ranks
        ),
        "KB17 DDP, each worker joins the group": _on_sips(
            "ddp.py::each-worker", values.reduced_ranks
        ),
        "KB18 tensor-parallel linear pair": _on_sips("tp_linear_pair.py", values.tensor_parallel),
        "KB19 decode attention over a page table": ProgramCase(
            "attention.py::paged", values.decoded_pages
        ),
        "KB20 attention with softmax": ProgramCase("attention.py::attention", values.attention),
        "KB21 a topology of the program's own": ProgramCase(
            "own_engine.py", values.summed, beside={"topology.yaml": TWO_CUBES}
        ),
        "KB22 messages through submit": ProgramCase("messages.py", values.submitted),
        "KB23 a registered bench": ProgramCase("bench_entry.py", values.scaled, dtype="f32"),
        "KB24 sizes replaced by local ones": ProgramCase("local_sizes.py", values.negated),
        "KB25 both shapes of DPPolicy": ProgramCase(
            "sip_policies.py", values.squared, topology=TWO_SIPS
        ),
        "KB26 two launches, one after the other": ProgramCase("mlp.py", values.two_products),
    }
)


def oracles() -> Iterator[Row]:
    for name, case in PROGRAMS.items():
        yield name, partial(check_values, case=case)
