"""Code that files bring or name: every place that runs it is known, and ``--no-code`` refuses all.

Each entry is tried twice with a file whose code makes a mark: without ``--no-code`` the mark is
there, so that the entry is one; with it there is none.
"""

import ast
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import tilewright
from tests.models.gguf_making import tiny_metadata, tiny_tensors, write_gguf
from tilewright.cli.main import main
from tilewright.collectives.config import parse_config
from tilewright.engine import EngineKind
from tilewright.errors import CodeRefusedError, TilewrightError
from tilewright.interop.kernbench.ccl.config import (
    load_algorithm,
    load_ccl_config,
    resolve_algorithm_config,
)
from tilewright.records import RunRecord, read_record, write_record
from tilewright.trust import NO_CODE_VARIABLE, check_code_allowed, is_code_refused, refused_code
from tilewright.validation.finding import OracleGroup
from tilewright.validation.run import run_oracles

SOURCE = Path(tilewright.__file__).parent
RUNNERS = {
    "__import__", "eval", "exec", "exec_module", "import_module", "resolve_name", "run_module",
    "run_path",
}  # fmt: skip
LOADERS = {"cloudpickle", "dill", "joblib", "marshal", "np", "numpy", "pickle", "torch"}

REFUSED = {
    "attention/flow/loader.py",
    "attention/flow/package.py",  # only the loader calls it, for a flow file that runs already
    "collectives/config.py",
    "interop/kernbench/ccl/config.py",
    "interop/program_file.py",
    "machine/impl.py",
}
"""Files that run code of users' files, and ask first."""

OWN = {
    "__init__.py",  # a name of the package, from a table
    "attention/backends/generated.py",  # text of our own generator
    "attention/backends/reference/namespace.py",  # a library by its name
    "attention/backends/triton/step.py",  # a library by its name
    "attention/planner/policy.py",  # arithmetic over known names, checked node by node
    "programs/__init__.py",  # modules of its own folder of built-in programs
    "validation/triton/scalar.py",  # text of the oracle itself
    "bench/peers/__init__.py",  # a module of ours by its name
    "bench/peers/triton_interpreter.py",  # what a process of ours answers
    "bench/peers/triton_worker.py",  # what its parent process asks
    "collectives/algorithms/__init__.py",  # modules of the package, and what stands beside them
    "cli/group.py",  # a command by its name
    "cli/main.py",  # an empty text
    "interop/kernbench/names.py",  # a table of ours
    "models/model.py",  # a library by its name
    "native/__init__.py",  # the compiled module
}
"""Files that run code of the package itself, or of a library that is installed."""


def runs_code(node: ast.AST) -> bool:
    """Whether a node is a call that may run code from elsewhere."""
    if not isinstance(node, ast.Call):
        return False
    match node.func:
        case ast.Name(id=name):
            return name in RUNNERS
        case ast.Attribute(value=ast.Name(id=module), attr="load" | "loads"):
            return module in LOADERS
        case ast.Attribute(attr=name):
            return name in RUNNERS
    return False


def test_every_file_that_may_run_code_from_elsewhere_is_in_one_of_the_tables() -> None:
    texts = {file: file.read_text("utf-8") for file in SOURCE.rglob("*.py")}
    found = {
        file.relative_to(SOURCE).as_posix()
        for file, text in texts.items()
        if any(word in text for word in {*RUNNERS, ".load"})
        and any(map(runs_code, ast.walk(ast.parse(text))))
    }
    assert found == REFUSED | OWN
    assert not REFUSED & OWN


MARKING = "import pathlib\npathlib.Path(__file__).with_name('mark').touch()\n"
BLOCK = """
class Link:
    def __init__(self, *, name, spec):
        pass
    def service(self, packet, now_ps):
        return 1000, 1000
"""
PROGRAM = "def run(torch):\n    torch.zeros((64,), 'f16')\n"
FLOW = """
from tilewright.attention import Mean, vFlow, GeMM, topK, Max, register, FORMAT

@register("stranger")
class Flow(vFlow):
    pass
"""
ALGORITHM = "def kernel(*a):\n    pass\ndef kernel_args(world_size, n_elem):\n    return ()\n"
PLAN = "def plan(*a):\n    pass\n"


@dataclass(frozen=True, slots=True)
class Entry:
    """A way from a file to its code: the files, and what a user does with them."""

    files: dict[str, str]  # text by name; the code that makes the mark is in one of them
    use: tuple[str, ...] | Callable[[Path], object]  # a command line, or a call
    where: str  # file and line that the refusal names

    def act(self) -> None:
        """Do what the user does; what goes wrong then is no matter."""
        if callable(self.use):
            with suppress(TilewrightError):
                self.use(Path())
        else:
            main(list(self.use))


MACHINE = {"m.yaml": "extends: ahbm-small\ncube:\n  noc:\n    impl: stranger:Link\n"}
AS_BLOCK = MACHINE | {"stranger.py": MARKING + BLOCK}
AS_FLOW = {"stranger.py": MARKING + FLOW}
AT_IMPL = "m.yaml line 4: cube.noc.impl"
ATTEND = ("attention", "run", "--context", "64", "--steps", "1")
ON_MACHINE = ("attention", "run", "--backend", "machine", "--context", "64", "--phases", "1")
COMPARE = ("attention", "compare", "--source", "synthetic", "--context", "64", "--steps", "1")
GENERATE = ("generate", "--model", "tiny.gguf", "--prompt", "the", "--max-tokens", "1")


def ccl(module: str) -> str:
    return f"algorithms:\n  mine:\n    module: {module}\n"


def load_kernbench_algorithm(folder: Path) -> object:
    config = load_ccl_config(folder / "ccl.yaml")
    return load_algorithm(resolve_algorithm_config(config, "mine"))


ENTRIES = {
    "impl, machine show": Entry(AS_BLOCK, ("machine", "show", "m.yaml"), AT_IMPL),
    "impl, machine check": Entry(AS_BLOCK, ("machine", "check", "m.yaml"), AT_IMPL),
    "impl, run": Entry(AS_BLOCK, ("run", "gemm_single_pe", "--machine", "m.yaml"), AT_IMPL),
    "impl, probe": Entry(
        AS_BLOCK, ("probe", "--case", "pe_local", "--bytes", "256", "--machine", "m.yaml"), AT_IMPL
    ),
    "impl, attention run": Entry(AS_BLOCK, (*ON_MACHINE, "--machine", "m.yaml"), AT_IMPL),
    "impl, attention compare": Entry(AS_BLOCK, (*COMPARE, "--machine", "m.yaml"), AT_IMPL),
    "impl, generate": Entry(AS_BLOCK, (*GENERATE, "--machine", "m.yaml"), AT_IMPL),
    "impl, bench decode": Entry(AS_BLOCK, ("bench", "decode", "--machine", "m.yaml"), AT_IMPL),
    "impl of a file that another extends": Entry(
        AS_BLOCK | {"n.yaml": "extends: m.yaml\n"}, ("machine", "show", "n.yaml"), AT_IMPL
    ),
    "impl by --set": Entry(
        AS_BLOCK,
        ("machine", "show", "ahbm-small", "--set", "cube.noc.impl=stranger:Link"),
        "--set cube.noc.impl",
    ),
    "program": Entry(
        {"stranger.py": MARKING + PROGRAM}, ("run", "stranger.py"), "stranger.py line 1"
    ),
    "program of KernBench": Entry(
        {"stranger.py": MARKING + "import kernbench\n" + PROGRAM},
        ("run", "stranger.py"),
        "stranger.py line 1",
    ),
    "program that a record names": Entry(
        {"stranger.py": MARKING + PROGRAM},
        ("explain", "record.json", "--measure"),
        "stranger.py line 1",
    ),
    "impl of a machine that a record names": Entry(
        AS_BLOCK, ("explain", "machine.json", "--measure"), AT_IMPL
    ),
    "flow, attention check": Entry(
        AS_FLOW, ("attention", "check", "stranger.py"), "stranger.py line 1"
    ),
    "flow, attention show": Entry(
        AS_FLOW, ("attention", "show", "stranger.py"), "stranger.py line 1"
    ),
    "flow, attention compile": Entry(
        AS_FLOW, ("attention", "compile", "stranger.py"), "stranger.py line 1"
    ),
    "flow, attention run": Entry(AS_FLOW, (*ATTEND, "--flow", "stranger.py"), "stranger.py line 1"),
    "flow, attention compare": Entry(
        AS_FLOW, (*COMPARE, "--flows", "stranger.py"), "stranger.py line 1"
    ),
    "flow, generate": Entry(AS_FLOW, (*GENERATE, "--flow", "stranger.py"), "stranger.py line 1"),
    "flow that imports a file beside it": Entry(
        {"inner.py": MARKING, "stranger.py": "from . import inner\n" + FLOW},
        ("attention", "check", "stranger.py"),
        "stranger.py line 1",
    ),
    "plan of ccl.yaml": Entry(
        {"ccl.yaml": ccl("stranger:plan"), "stranger.py": MARKING + PLAN},
        lambda folder: parse_config(folder / "ccl.yaml"),
        "ccl.yaml line 3: algorithms.mine.module",
    ),
    "kernel of ccl.yaml": Entry(
        {"ccl.yaml": ccl("stranger"), "stranger.py": MARKING + ALGORITHM},
        load_kernbench_algorithm,
        "ccl.yaml line 3: algorithms.mine.module",
    ),
}
ENTRY = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of a ready program, and a small model."""
    folder = tmp_path_factory.mktemp("shared")
    record = folder / "ready.json"
    run = ("run", "gemm_single_pe", "--machine", "ahbm-small", "--once", "--record", str(record))
    assert main(list(run)) == 0
    write_gguf(folder / "tiny.gguf", tiny_metadata(), tiny_tensors())
    found = read_record(record, RunRecord)
    what = found.what.model_copy(update={"program": "./stranger.py", "file_hash": "0" * 64})
    write_record(folder / "record.json", found.model_copy(update={"what": what}))
    machine = found.machine.model_copy(update={"source": "m.yaml"})
    write_record(folder / "machine.json", found.model_copy(update={"machine": machine}))
    return folder


@pytest.fixture
def folder(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Entry], Path]]:
    """Write the files of an entry and go there; modules of the folder can be imported."""

    def written(entry: Entry) -> Path:
        for file in shared.iterdir():
            (tmp_path / file.name).symlink_to(file)
        for name, text in entry.files.items():
            (tmp_path / name).write_text(text)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        return tmp_path

    yield written
    sys.modules.pop("stranger", None)


@ENTRY
def test_an_entry_runs_code_of_its_file(folder: Callable[[Entry], Path], entry: Entry) -> None:
    where = folder(entry)
    entry.act()
    assert (where / "mark").exists()


@ENTRY
def test_nothing_of_an_entry_runs_where_code_is_refused(
    folder: Callable[[Entry], Path], entry: Entry, capsys: pytest.CaptureFixture[str]
) -> None:
    where = folder(entry)
    if callable(entry.use):
        with refused_code(), pytest.raises(CodeRefusedError) as refused:
            entry.use(Path())
        assert refused.value.where == entry.where
    else:
        assert main([*entry.use, "--no-code"]) == 2
        message = capsys.readouterr().err
        assert entry.where in message
        assert "no code to run, as --no-code" in message or "would be imported" in message
    assert not (where / "mark").exists()
    assert "stranger" not in sys.modules
    assert not is_code_refused()


@pytest.mark.parametrize(
    "arguments",
    [
        ("machine", "show", "ahbm-small"),
        ("machine", "check", "plain.yaml"),
        ("run", "gemm_single_pe", "--machine", "plain.yaml", "--once"),
        ("probe", "--case", "pe_local", "--bytes", "256", "--machine", "plain.yaml"),
        ("explain", "ready.json"),
        ("explain", "ready.json", "--measure", "--seconds", "0"),
        ("compare", "ready.json", "ready.json"),
        ("attention", "show", "quest"),
        ATTEND,
        (*ON_MACHINE, "--machine", "plain.yaml", "--batch", "1"),
        ("list",),
    ],
    ids=" ".join,
)
def test_what_brings_no_code_can_be_looked_at_where_code_is_refused(
    folder: Callable[[Entry], Path],
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
) -> None:
    folder(Entry({"plain.yaml": "extends: ahbm-small\nname: plain\n"}, (), ""))
    assert main(["--no-code", *arguments]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(("value", "is_refused"), [("1", True), ("", False), ("0", False)])
def test_the_variable_refuses_code_as_the_option_does(
    monkeypatch: pytest.MonkeyPatch, value: str, is_refused: bool
) -> None:
    monkeypatch.setenv(NO_CODE_VARIABLE, value)
    assert is_code_refused() == is_refused
    if is_refused:
        with pytest.raises(CodeRefusedError, match=r"m\.py line 1: found code, expected no code"):
            check_code_allowed("m.py line 1", "code")
    else:
        check_code_allowed("m.py line 1", "code")


def test_the_option_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NO_CODE_VARIABLE, "0")
    with refused_code():
        assert is_code_refused()
    assert os.environ[NO_CODE_VARIABLE] == "0"


def test_oracles_whose_files_are_code_are_left_out_and_named_where_code_is_refused() -> None:
    notes: list[str] = []
    with refused_code():
        record = run_oracles(
            EngineKind.REFERENCE, group=OracleGroup.KERNBENCH, progress=notes.append
        )
    assert (record.oracles, notes) == ((), [])
    (reason,) = record.skipped
    assert "which --no-code refuses" in reason
