"""What holds for every ready program."""

from pkgutil import resolve_name
from typing import Any

import pytest

from tests.kinds import needs_both_engines
from tests.programs.mutant import mutant
from tests.programs.small import EXCHANGES, MACHINE, SIPS, SMALL, run_small
from tilewright import programs
from tilewright.engine import EngineKind
from tilewright.errors import AddressError, BenchError, CollectiveError, OutOfMemoryError
from tilewright.host import RuntimeContext
from tilewright.programs import PROGRAMS
from tilewright.programs.parameter import parse_parameters

WITHOUT_VALUES: dict[str, dict[str, Any]] = {"quest_decode": {"selection": "recent"}}
"""Parameters with which a program that needs values can do without."""

KEEPS_VALUES = {"pointer_chase", "va_offset_verify"}
"""Programs on integers, which have their values also where only time is asked for."""

MISTAKES = {
    "qkv_gemm": (
        "builtin.gemm.product_kernel",
        "a, b, out_ptr,",
        "a, b, tl.ref(out_ptr, (m, n), None, (0, 1)),",
    ),
    "gemm_single_pe": (
        "builtin.gemm._staged",
        "tl.ref(pointer, shape)",
        "tl.ref(pointer, shape, None, (0, 1))",
    ),
    "gpt3_qkv": (
        "builtin.gemm._staged",
        "tl.load(pointer, shape=shape)",
        "tl.load(tl.ref(pointer, shape, None, (0, 1)))",
    ),
    "matmul": (
        "builtin.gemm.product_kernel",
        "tile_shape=tile",
        "epilogue=['relu'], tile_shape=tile",
    ),
    "softmax": ("builtin.row.softmax_kernel", "tl.sum(weights, 1)", "tl.max(weights, 1)"),
    "layer_norm": ("builtin.row.layer_norm_kernel", "x - (tl.sum", "x + (tl.sum"),
    "flash_attention": ("builtin.flash_attention._prefill_tile", "rows >= first", "rows > first"),
    "decode_attention": (
        "builtin.decode_attention.decode_kernel",
        "range(starts",
        "range(1 + starts",
    ),
    "quest_decode": ("builtin.quest_decode._choose_pages", "descending=True", "descending=False"),
    "ring_attention": ("ring_kernel._masked", "rows >= keys", "rows > keys"),
    "decode_merge": ("attention.merge_softmax", "+ other.total", "+ one.total"),
    "stream": ("builtin.stream.triad_kernel", "a + factor * b", "b + factor * a"),
    "pointer_chase": ("builtin.pointer_chase.chase_kernel", "range(hops)", "range(hops - 1)"),
    "va_offset_verify": ("builtin.va_offset_verify.offset_kernel", "(program + shift)", "(shift)"),
    "allreduce": ("builtin.collective._all_reduce", "(inputs[0])", "(inputs[0], op='max')"),
    "allgather": ("builtin.collective._all_gather", "(outputs,", "(outputs[::-1],"),
    "reduce_scatter": ("builtin.collective._reduce_scatter", ", inputs)", ", inputs, op='max')"),
    "alltoall": ("builtin.collective._all_to_all", "(outputs,", "(outputs[::-1],"),
    "broadcast": ("builtin.collective._broadcast", "src=0", "src=1"),
    "allreduce_ring": ("builtin.tile_sum.ring_sum_kernel", "columns - 1", "columns"),
    "allreduce_cubes": ("builtin.tile_sum.ring_sum_kernel", 'send("E", tile)', 'send("E", total)'),
    "allreduce_mesh": ("builtin.tile_sum.mesh_sum_kernel", "_line_sum(row,", "_line_sum(tile,"),
    "allreduce_tree": (
        "builtin.tile_sum.tree_sum_kernel",
        "send(direction, total)",
        "send(direction, total - 1)",
    ),
}
"""Of each program: a function, a part of its text, and what somebody could write instead."""

OUTSIDE = {
    "qkv_gemm": ("builtin.gemm.product_kernel", "a, b, out_ptr", "a, b, out_ptr + 1"),
    "gemm_single_pe": ("builtin.gemm._staged", "tl.ref(pointer,", "tl.ref(pointer + 1,"),
    "gpt3_qkv": ("builtin.gemm._staged", "tl.load(pointer,", "tl.load(pointer + 1,"),
}
"""The same, of mistakes that leave what the PE has by one element."""

COUNTS_FROM_ZERO = {"sips", "cubes", "pes", "shift"}


def test_every_program_is_tried_small_and_with_a_mistake() -> None:
    assert list(SMALL) == list(PROGRAMS) == list(MISTAKES)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_right_values_and_does_not_beat_its_bound(name: str) -> None:
    outcome = run_small(name)
    assert outcome.values_ok is True
    assert 0 < outcome.bound.total_ps <= outcome.latency_ps
    assert outcome.bound.total_ps == max(outcome.bound.parts.values())
    assert outcome.bound.total_ps == outcome.bound.parts[outcome.bound.resource]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_takes_the_same_time_without_values(name: str) -> None:
    parameters = WITHOUT_VALUES.get(name, {})
    timed, valued = (run_small(name, data=data, **parameters) for data in (False, True))
    assert timed.values_ok is (True if name in KEEPS_VALUES else None)
    assert timed.latency_ps == valued.latency_ps
    assert timed.bound == valued.bound


def make_mistake(monkeypatch: pytest.MonkeyPatch, function: str, text: str, mistake: str) -> None:
    right = resolve_name(f"{programs.__name__}.{function}")
    monkeypatch.setattr(right, "__code__", mutant(right, text, mistake).__code__)  # for all holders


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mistake_in_a_kernel_makes_the_values_wrong(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_mistake(monkeypatch, *MISTAKES[name])
    assert run_small(name).values_ok is False


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_access_by_one_element_outside_of_what_the_pe_has_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_mistake(monkeypatch, *OUTSIDE[name])
    with pytest.raises(AddressError, match="expected "):
        run_small(name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_defaults_are_what_texts_of_them_say(name: str) -> None:
    parameters = PROGRAMS[name].parameters
    texts = {parameter.name: str(parameter.default) for parameter in parameters}
    parsed = parse_parameters(parameters, texts, where=name)
    assert parsed == {parameter.name: parameter.default for parameter in parameters}


@needs_both_engines
@pytest.mark.parametrize(
    "name",
    [
        "decode_merge",
        "flash_attention",
        "pointer_chase",
        "qkv_gemm",
        "quest_decode",
        "ring_attention",
    ],
)
def test_both_engines_give_the_same_reports(name: str) -> None:
    native, reference = (
        run_small(name, engine=kind) for kind in (EngineKind.NATIVE, EngineKind.REFERENCE)
    )
    assert native == reference


def test_a_program_leaves_nothing_behind_that_changes_the_next_run() -> None:
    first, second = (run_small("matmul") for _ in range(2))
    assert first.launches == second.launches


def test_a_program_runs_on_the_second_sip_of_a_larger_machine() -> None:
    with RuntimeContext("ahbm", device="sip:1") as torch:
        outcome = PROGRAMS["qkv_gemm"].run(torch)
    assert outcome.values_ok is True
    assert {pe.sip for pe in outcome.launches[0].pes} == {1}
    assert MACHINE.grid.num_sips == 1


def test_an_algorithm_that_cannot_carry_out_a_collective_is_refused() -> None:
    with pytest.raises(CollectiveError, match=r"found the algorithm 'ring', expected .*: direct;"):
        run_small("alltoall", algorithm="ring")


@pytest.mark.parametrize("name", EXCHANGES)
def test_a_collective_may_be_of_one_element_a_rank(name: str) -> None:
    with RuntimeContext(SIPS) as torch:
        outcome = PROGRAMS[name].run(torch, bytes=4 * SIPS.grid.num_sips)
    assert outcome.values_ok is True
    assert outcome.bound.total_ps > 0


@pytest.mark.parametrize("name", EXCHANGES)
def test_collectives_run_where_their_tensors_lie(name: str) -> None:
    with RuntimeContext(SIPS) as torch:
        outcome = PROGRAMS[name].run(torch, bytes=3001)
        assert not [note for note in torch.distributed.notes if "copied through the host" in note]
    assert outcome.values_ok is True
    assert outcome.notes == ("3000 of 3001 bytes: as many f32 for each rank",)
    assert run_small(name).notes == ()


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("softmax", "rows"),
        ("flash_attention", "block"),
        ("decode_attention", "requests"),
        ("decode_attention", "max_length"),
        ("allreduce", "bytes"),
        ("allreduce_ring", "ranks"),
    ],
)
def test_a_size_beyond_all_memory_is_refused_before_anything_is_drawn(
    name: str, parameter: str
) -> None:
    program = PROGRAMS[name]
    values = parse_parameters(program.parameters, {parameter: "1" + 19 * "0"}, where=name)
    refused = pytest.raises(OutOfMemoryError, match="bytes of all HBM of the machine")
    with RuntimeContext(SIPS if name == "allreduce" else MACHINE) as torch, refused:
        program.run(torch, **values)


@pytest.mark.parametrize(
    ("program", "parameter"),
    [
        (program.name, parameter.name)
        for program in PROGRAMS.values()
        for parameter in program.parameters
        if parameter.kind is int and parameter.name not in COUNTS_FROM_ZERO
    ],
)
def test_a_size_below_one_is_refused(program: str, parameter: str) -> None:
    with pytest.raises(BenchError, match=rf"{parameter}=0|0 (query|KV) heads|of 0 channels|for 0"):
        run_small(program, **dict[str, Any]({parameter: 0}))


@pytest.mark.parametrize("program", ["softmax", "layer_norm"])
def test_rows_for_every_pe_are_asked_for(program: str) -> None:
    with pytest.raises(BenchError, match="rows=3 for 4 PEs, expected at least one for each PE"):
        run_small(program, rows=3)


def test_a_shift_may_be_any_number() -> None:
    for shift in (-9, 0, 1000):
        assert run_small("va_offset_verify", shift=shift).values_ok is True
