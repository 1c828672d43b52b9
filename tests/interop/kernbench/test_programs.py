"""KernBench programs through the command line, and the oracles that judge what they compute.

`tilewright validate` runs every program; here are its command, its notes, and what a mistake in a
program does to its oracle.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.cli.main import main
from tilewright.engine import EngineKind
from tilewright.host import RuntimeContext
from tilewright.interop.kernbench.loading import KernbenchProgram
from tilewright.programs.contract import tolerance_of
from tilewright.records import RunRecord
from tilewright.validation.kernbench import rules as law
from tilewright.validation.kernbench.rules import PROGRAM_FILES, PROGRAMS, run_case

Cli = Callable[..., tuple[int, str, str]]
SMALL = ("--machine", "ahbm-small")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def run_and_capture(*arguments: str) -> tuple[int, str, str]:
        status = main(list(arguments))
        output, errors = capsys.readouterr()
        return status, output, errors

    return run_and_capture


def test_every_file_of_the_folder_belongs_to_a_program_of_the_table() -> None:
    used = {case.file for case in PROGRAMS.values()}
    used |= {name for case in PROGRAMS.values() for name in case.beside.values()}
    used |= {case.topology for case in PROGRAMS.values() if case.topology is not None}
    assert {file.name for file in PROGRAM_FILES.iterdir() if file.is_file()} == used


def test_every_program_imports_kernbench_and_nothing_of_ours() -> None:
    for case in PROGRAMS.values():
        text = (PROGRAM_FILES / case.file).read_text()
        assert "from kernbench." in text
        assert "tilewright" not in text


def test_a_program_runs_by_its_path_and_its_module_paths_are_gone_afterwards(cli: Cli) -> None:
    file = f"{PROGRAM_FILES / 'products.py'}::gemm_single_pe"
    status, output, _ = cli("run", file, *SMALL, "--json")
    record = RunRecord.model_validate_json(output)
    assert (status, record.status, len(record.launches)) == (0, "complete", 1)
    assert record.launches[0].name == "gemm_single_pe"
    assert sum(record.breakdown_ps.model_dump().values()) == record.latency_ps > 0
    assert not [name for name in sys.modules if name.partition(".")[0] == "kernbench"]


def test_each_replaced_size_is_a_line_of_the_output_and_of_the_record(cli: Cli) -> None:
    file = PROGRAM_FILES / "local_sizes.py"
    note = "argument 2 is 40 in the place of 80: tensor 'x' splits that size over 2 cubes"
    _, table, _ = cli("run", str(file), *SMALL, "--once")
    assert " ".join(table.split()).count(note) == 1
    _, output, _ = cli("run", str(file), *SMALL, "--once", "--json")
    notes = [line for line in json.loads(output)["notes"] if "in the place of" in line]
    assert len(notes) == 1  # two equal launches, and one that switches it off
    assert note in notes[0]


def test_a_decorated_function_is_found_by_the_name_of_its_bench(cli: Cli) -> None:
    file = PROGRAM_FILES / "bench_entry.py"
    status, output, _ = cli("run", f"{file}::scale-vector", *SMALL, "--once")
    assert (status, "scale-vector" in output) == (0, True)
    status, _, errors = cli("run", f"{file}::scale-vectr", *SMALL, "--once")
    assert status == 2
    assert "did you mean 'scale-vector'" in errors


def test_a_program_with_a_machine_of_its_own_is_measured_on_that_machine(
    cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "own_engine.py"
    copyfile(PROGRAM_FILES / "own_engine.py", file)
    copyfile(PROGRAM_FILES / "two_cubes.yaml", tmp_path / "topology.yaml")
    status, output, _ = cli("run", str(file), *SMALL, "--once", "--json")
    record = RunRecord.model_validate_json(output)
    assert (status, len(record.launches)) == (0, 1)
    assert (record.machine.fields["sip.columns"], record.machine.fields["cube.pes"]) == (2, 8)


BREAKS = {
    "products.py::qkv_columns": (
        "w_ptr + part * K * columns * ITEM, shape",
        "w_ptr + part * M * columns * ITEM, shape",
    ),
    "va_offset_verify.py": ("(me + 1) % world", "me"),
    "composite_epilogue.py": ('"relu",', ""),
    "attention.py::paged": ("min(PAGE, length - index * PAGE)", "PAGE"),
    "local_sizes.py": ("x * -1.0", "x * -1.1"),
    "mlp.py": ("tl.maximum(hidden, 0.0)", "hidden"),
    "bench_entry.py": ("256, 2.5)", "256, 2.501)"),
}


@pytest.mark.parametrize("source", BREAKS)
def test_an_oracle_finds_a_program_that_computes_something_else(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [name] = [name for name, case in PROGRAMS.items() if case.source == source]
    file = PROGRAMS[name].file
    text = (PROGRAM_FILES / file).read_text()
    before, after = BREAKS[source]
    assert text.count(before) == 1
    (tmp_path / file).write_text(text.replace(before, after))
    monkeypatch.setattr(law, "PROGRAM_FILES", tmp_path)
    finding = law.check_values(EngineKind.NATIVE, case=PROGRAMS[name])
    assert not finding.ok


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_sanitizer_finds_nothing_in_a_right_program_and_changes_no_value(name: str) -> None:
    case = PROGRAMS[name]
    watched = run_case(case, EngineKind.NATIVE, sanitize=True)
    for result, wanted in case.form(watched).items():
        assert law.error_of(watched[result], wanted) <= tolerance_of(case.dtype)


def test_a_program_gives_the_same_on_both_engines() -> None:
    case = PROGRAMS["KB19 decode attention over a page table"]
    native, reference = (run_case(case, kind)["out"] for kind in EngineKind)
    np.testing.assert_array_equal(native, reference)


RANDOM = """\
import numpy as np
from kernbench.policy.placement.dp import DPPolicy

RESULTS = {{}}


def kernel(x_ptr, out_ptr, parts, rows, columns, tl):
    part = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    for other in (part, (part + {shift}) % parts):
        at = other * rows * columns * {size}
        total = tl.load(x_ptr + at, (rows, columns), "{dtype}")
        if other == part:
            own = total
    tl.store(out_ptr + part * rows * columns * {size}, own + total)


def run(torch):
    dp = DPPolicy(cube="{cube}", pe="{pe}", num_cubes={cubes}, num_pes={pes})
    x = np.random.default_rng({seed}).integers(-99, 99, {shape}).astype("{numpy}")
    a = torch.empty({shape}, "{dtype}", dp=dp, name="x")
    a.copy_(torch.from_numpy(x))
    out = torch.zeros({shape}, "{dtype}", dp=dp, name="out")
    torch.launch("random", kernel, a, out, {parts}, {rows}, {columns}, _auto_dim_remap=False)
    RESULTS.update(x=x, out=out.numpy())
"""


@settings(max_examples=15, deadline=None)
@given(
    words=st.tuples(*[st.sampled_from(["row_wise", "column_wise"])] * 2),
    counts=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    local=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    dtype=st.sampled_from([("f32", "float32", 4), ("i16", "int16", 2), ("i8", "int8", 1)]),
    shift=st.integers(0, 15),
    seed=st.integers(0, 99),
)
def test_kernels_find_every_shard_at_its_offset_whatever_the_policy_and_the_size(
    words: tuple[str, str],
    counts: tuple[int, int],
    local: tuple[int, int],
    dtype: tuple[str, str, int],
    shift: int,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    (cube, pe), (cubes, pes), (rows, columns) = words, counts, local
    splits = [(cubes if cube == word else 1) * (pes if pe == word else 1) for word in
              ("row_wise", "column_wise")]  # fmt: skip
    shape = (rows * splits[0], columns * splits[1])
    text = RANDOM.format(
        cube=cube, pe=pe, cubes=cubes, pes=pes, parts=cubes * pes, rows=rows, columns=columns,
        shape=shape, dtype=dtype[0], numpy=dtype[1], size=dtype[2], shift=shift, seed=seed,
    )  # fmt: skip
    file = tmp_path_factory.mktemp("random") / "random_program.py"
    file.write_text(text)
    program = KernbenchProgram(file, file.read_bytes())
    program.run(RuntimeContext("ahbm-small"), {})
    results = program.module.RESULTS
    blocks = _blocks(results["x"], (cube, pe), (cubes, pes))
    wanted = [block + blocks[(at + shift) % len(blocks)] for at, block in enumerate(blocks)]
    found = _blocks(results["out"], (cube, pe), (cubes, pes))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def _blocks(array: np.ndarray, words: tuple[str, str], counts: tuple[int, int]) -> list[np.ndarray]:
    """Return the parts of a matrix, cube by cube and PE by PE, split again by NumPy."""
    axes = [0 if word == "row_wise" else 1 for word in words]
    return [
        part
        for of_cube in np.split(array, counts[0], axis=axes[0])
        for part in np.split(of_cube, counts[1], axis=axes[1])
    ]
