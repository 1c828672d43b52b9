from pathlib import Path

import numpy as np
import pytest

from tilewright.collectives.config import parse_config
from tilewright.collectives.operation import Operation
from tilewright.device.ipcq import Backpressure, RingKind, RingSpec
from tilewright.errors import RegistryError, SpecError
from tilewright.host import RuntimeContext


def written(folder: Path, text: str) -> Path:
    file = folder / "ccl.yaml"
    file.write_text(text)
    return file


def test_the_packaged_file_gives_the_rings_that_are_the_default() -> None:
    config = parse_config()
    assert (config.algorithm, config.defaults.ring.spec()) == ("auto", RingSpec())


def test_an_entry_of_an_algorithm_changes_its_rings_only(tmp_path: Path) -> None:
    text = "defaults:\n  n_slots: 8\nalgorithms:\n  direct:\n    buffer_kind: hbm\n"
    config = parse_config(written(tmp_path, text))
    assert config.entry("ring").ring.spec() == RingSpec(slots=8)
    assert config.entry("direct").ring.spec() == RingSpec(RingKind.HBM, slots=8)


def test_backpressure_and_the_size_of_credits_are_read(tmp_path: Path) -> None:
    text = "defaults:\n  backpressure: poll\n  ipcq_credit_size_bytes: 32\n  slot_size: 1024\n"
    expected = RingSpec(slot_bytes=1024, backpressure=Backpressure.POLL, token_bytes=32)
    assert parse_config(written(tmp_path, text)).defaults.ring.spec() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("defaults:\n  n_slotz: 4\n", r"line 2: defaults\.n_slotz: found an unknown key"),
        ("defaults:\n  n_slots: 0\n", r"line 2: defaults\.n_slots: found 0"),
        ("defaults:\n  buffer_kind: dram\n", "one of tcm, sram, hbm"),
        ("algorithms:\n  rign: {}\n", r"line 2: algorithms\.rign: found no `module`, and"),
        ("algorithms:\n  mine:\n    module: no_such_module:plan\n", "cannot be imported"),
        ("algorithms:\n  mine:\n    module: os:sep\n", "line 3: .* which cannot be called"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_config(written(tmp_path, text))


def test_a_module_of_a_user_is_an_algorithm_like_others(tmp_path: Path) -> None:
    target = "tilewright.collectives.algorithms.ring:plan_ring"
    text = f"algorithms:\n  mine:\n    module: {target}\n    operations: [all_gather]\n"
    config = parse_config(written(tmp_path, text))
    assert config.algorithms["mine"].operations == {Operation.ALL_GATHER}


def test_a_module_cannot_take_the_name_of_an_algorithm(tmp_path: Path) -> None:
    target = "tilewright.collectives.algorithms.ring:plan_ring"
    with pytest.raises(RegistryError, match="two algorithms 'ring'"):
        parse_config(written(tmp_path, f"algorithms:\n  ring:\n    module: {target}\n"))


def test_calls_take_the_algorithm_and_the_rings_of_the_file(tmp_path: Path) -> None:
    defaults = "defaults:\n  algorithm: direct\n  slot_size: 1024\n"
    entry = "algorithms:\n  direct:\n    buffer_kind: sram\n"
    file = written(tmp_path, defaults + entry)
    with RuntimeContext("ahbm-small") as torch:
        places = [(0, 0, pe) for pe in range(3)]
        torch.distributed.init_process_group(rank_to_pe=places, ccl_yaml=file)
        tensor = torch.from_numpy(np.ones(5, np.float32))
        torch.distributed.all_reduce(tensor)
        (plan,) = torch.distributed.book.plans
        assert (plan.neighbours.ring.kind, plan.neighbours.ring.slot_bytes) == (RingKind.SRAM, 1024)
        assert plan.num_rings == 6  # everybody with everybody


def test_what_a_program_says_goes_before_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "defaults:\n  algorithm: direct\n  buffer_kind: sram\n")
    with RuntimeContext("ahbm-small") as torch:
        places = [(0, 0, pe) for pe in range(4)]
        torch.distributed.init_process_group(
            rank_to_pe=places, ccl_yaml=file, algorithm="ring", buffer_kind="tcm"
        )
        torch.distributed.all_reduce(torch.from_numpy(np.ones(5, np.float32)))
        (plan,) = torch.distributed.book.plans
        assert (plan.neighbours.ring.kind, plan.num_rings) == (RingKind.TCM, 8)


def test_keys_of_kernbench_without_effect_are_listed_and_their_values_checked(
    tmp_path: Path,
) -> None:
    text = "defaults:\n  vc_chunk_size: 256\nalgorithms:\n  ring:\n    root_cube: 0\n"
    file = written(tmp_path, text)
    assert parse_config(file).without_effect == (
        f"{file} line 2: defaults.vc_chunk_size has no effect here",
        f"{file} line 5: algorithms.ring.root_cube has no effect here",
    )
    with RuntimeContext("ahbm-small", device="sip:0") as torch:
        torch.install_ipcq("ring", file)
        assert set(parse_config(file).without_effect) <= set(torch.notes)
    for key, value in (("vc_chunk_size", 0), ("root_cube", "ten")):
        with pytest.raises(SpecError, match=rf"line 2: defaults\.{key}: found .*a whole number"):
            parse_config(written(tmp_path, f"defaults:\n  {key}: {value}\n"))
