"""``ccl.yaml`` of KernBench programs: where it is found, what it says, what has no effect."""

from pathlib import Path

import pytest

from tests.interop.kernbench.contexts import context
from tests.interop.kernbench.worlds import ccl_file
from tilewright.errors import SpecError
from tilewright.interop.kernbench.ccl.config import (
    AlgorithmConfig,
    load_ccl_config,
    resolve_algorithm_config,
)

WHOLE = """\
defaults:
  algorithm: ring
  buffer_kind: sram
  backpressure: poll
  n_slots: 8
  slot_size: 512
  vc_chunk_size: 256
  ipcq_credit_size_bytes: 32
algorithms:
  ring:
    module: kernbench.ccl.algorithms.ring_allreduce
    topology: ring_1d
    n_elem: 64
    world_size: 4
    root_cube: 10
  other:
    module: kernbench.ccl.algorithms.tree_allreduce
    n_slots: 2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ccl.yaml"
    path.write_text(WHOLE)
    return path


def test_an_entry_is_over_the_defaults(file: Path) -> None:
    config = load_ccl_config(file)
    assert config["defaults"]["algorithm"] == "ring"
    assert resolve_algorithm_config(config) == {
        "buffer_kind": "sram", "backpressure": "poll", "n_slots": 8, "slot_size": 512,
        "vc_chunk_size": 256, "ipcq_credit_size_bytes": 32,
        "module": "kernbench.ccl.algorithms.ring_allreduce", "topology": "ring_1d",
        "n_elem": 64, "world_size": 4, "root_cube": 10,
    }  # fmt: skip
    other = resolve_algorithm_config(config, "other")
    assert (other.name, other["n_slots"], other["slot_size"]) == ("other", 2, 512)


def test_keys_without_effect_are_listed_with_their_lines_and_told_once(file: Path) -> None:
    listed = [
        f"{file} line 7: defaults.vc_chunk_size has no effect here",
        f"{file} line 15: algorithms.ring.root_cube has no effect here",
    ]
    assert list(load_ccl_config(file).without_effect) == listed
    torch = context()
    for _ in range(2):
        torch.install_ipcq(ccl_yaml=str(file))
    assert torch.engine.host.notes == [f"collectives as in {file}", *listed]


def test_without_a_path_the_file_beside_the_program_holds_else_the_folders_else_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found_by(folder: Path) -> str:
        names: dict[str, object] = {"load": load_ccl_config}
        text = "found = load().path"
        exec(compile(text, str(folder / "program.py"), "exec"), names)
        return str(names["found"])

    program, working = tmp_path / "program", tmp_path / "working"
    for folder in (program, working):
        folder.mkdir()
    monkeypatch.chdir(working)
    assert found_by(program).endswith("interop/kernbench/ccl/ccl.yaml")
    ccl_file(working)
    assert found_by(program) == "ccl.yaml"
    assert found_by(program) != str(ccl_file(program)) == found_by(program)


def test_a_dictionary_of_the_programs_own_is_an_entry() -> None:
    cfg = {"defaults": {"algorithm": "a", "n_slots": 2}, "algorithms": {"a": {"module": "m"}}}
    merged = resolve_algorithm_config(cfg)
    assert merged == {"module": "m", "n_slots": 2}
    assert AlgorithmConfig.of_mapping(merged) is merged
    assert AlgorithmConfig.of_mapping({"module": "m"}).where("module") == "algorithms.m.module"


@pytest.mark.parametrize(
    ("change", "name", "message"),
    [
        (("  algorithm: ring\n", ""), None, r"line 1: defaults\.algorithm: found no such key"),
        (("algorithm: ring", "algorithm: rign"), None, r"line 2: defaults\.algorithm: .*rign"),
        (("", ""), "othr", r"line 9: algorithms: found .*'othr', .*did you mean 'other'"),
        (("    module: kernbench.ccl.algorithms.ring_allreduce\n", ""), None,
         r"line 10: algorithms\.ring\.module: found no such key, expected the module of the"),
        (("n_slots: 8", "n_slot: 8"), None, r"line 5: defaults\.n_slot: found an unknown key"),
        (("buffer_kind: sram", "buffer_kind: dram"), None, r"line 3: .*'dram', .* one of tcm"),
        (("root_cube: 10", "root_cube: -1"), None, r"line 15: .*root_cube: found -1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_file_line_and_key(
    change: tuple[str, str], name: str | None, message: str, file: Path
) -> None:
    file.write_text(WHOLE.replace(*change, 1) if change[0] else WHOLE)
    with pytest.raises(SpecError, match=message):
        resolve_algorithm_config(load_ccl_config(file), name)


def test_an_entry_of_a_dictionary_without_a_module_is_refused() -> None:
    cfg = {"algorithms": {"a": {"n_elem": 4}}}
    with pytest.raises(SpecError, match=r"algorithms\.a\.module: found no such key"):
        resolve_algorithm_config(cfg, "a")
    with pytest.raises(SpecError, match=r"defaults\.algorithm: .*expected the name of .*: a"):
        resolve_algorithm_config(cfg)
