"""A prompt over a ring: who has which tokens, values for any sizes, and passing that hides."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs.mutant import mutant
from tests.programs.small import HEADS, MACHINE, SIPS, run_small
from tilewright.errors import BenchError, DeadlockError
from tilewright.host import RuntimeContext
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.programs import PROGRAMS
from tilewright.programs.attention import collect_tokens, deal_tokens
from tilewright.programs.contract import BenchOutcome
from tilewright.programs.ring_kernel import Order, RingDeal, _Walk
from tilewright.units import PS_PER_US

ORDERS: tuple[Order, ...] = ("zigzag", "contiguous")
deals = st.builds(
    RingDeal, st.integers(1, 60), st.integers(2, 9), st.sampled_from(("zigzag", "contiguous"))
)


def _run(machine: Machine = MACHINE, *, sanitize: bool = False, **parameters: Any) -> BenchOutcome:
    sizes: dict[str, Any] = {"length": 100, "block": 16, "key_block": 32, **HEADS}
    with RuntimeContext(machine, sanitize=sanitize) as torch:  # a finding raises at the end
        return PROGRAMS["ring_attention"].run(torch, **(sizes | parameters))


@settings(max_examples=10, deadline=None)
@given(
    length=st.integers(1, 90),
    pes=st.integers(2, 4),
    order=st.sampled_from(ORDERS),
    causal=st.booleans(),
    key_block=st.integers(3, 40),
    seed=st.integers(0, 9),
)
def test_any_prompt_on_any_ring_gives_attention(
    length: int, pes: int, order: str, causal: bool, key_block: int, seed: int
) -> None:
    sizes: dict[str, Any] = {"length": length, "pes": pes, "key_block": key_block}
    outcome = run_small("ring_attention", seed=seed, order=order, causal=causal, **sizes)
    assert outcome.values_ok is True
    assert outcome.bound.total_ps <= outcome.latency_ps


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("ring", "machine", "place", "num_pes"),
    [
        ("pe", MACHINE, {"cubes": 2}, 8),
        ("cube", MACHINE, {"cubes": 3}, 6),
        ("sip", SIPS, {"sips": 0}, 6),
        ("sip", SIPS, {"sips": 2, "cubes": 2}, 4),
    ],
)
def test_pes_cubes_and_sips_can_be_members(
    ring: str, machine: Machine, place: dict[str, int], num_pes: int, causal: bool
) -> None:
    outcome = _run(machine, sanitize=True, ring=ring, causal=causal, **place)
    assert outcome.values_ok is True
    assert len(outcome.launches[0].pes) == num_pes


def test_many_messages_and_few_commands_under_way_do_not_block_each_other() -> None:
    narrow = build_machine(parse_machine("ahbm-small", ["pe.queue_commands=8"]))
    outcome = _run(narrow, length=300, block=64, key_block=4, q_heads=2)
    assert outcome.values_ok is True


@pytest.mark.parametrize("queue_commands", [1, 2, 3])
@pytest.mark.parametrize(("ring", "key_block"), [("pe", 64), ("cube", 256)])
def test_members_pass_keys_on_with_any_queue(
    ring: str, key_block: int, queue_commands: int
) -> None:
    """A message of 256 keys is longer than a ring has room for."""
    change = f"pe.queue_commands={queue_commands}"
    narrow = build_machine(parse_machine("ahbm-small", [change]))
    sizes: dict[str, Any] = {"length": 1100, "q_heads": 2, "kv_heads": 2, "head_dim": 64}
    outcome = _run(narrow, ring=ring, cubes=2, block=256, key_block=key_block, **sizes)
    assert outcome.values_ok is True


def test_passing_hides_behind_attention() -> None:
    """Two of four lanes share a link between dies: at a quarter of its rate it takes far longer."""
    sizes: dict[str, Any] = {"length": 512, "q_heads": 16, "kv_heads": 4, "head_dim": 64}
    latencies, passing = [], []
    for rate in (128_000, 32_000):
        machine = build_machine(parse_machine("ahbm-small", [f"cube.ucie.bytes_per_us={rate}"]))
        outcome = _run(machine, ring="cube", cubes=4, block=64, key_block=64, causal=False, **sizes)
        latencies.append(outcome.latency_ps)
        passing.append(2 * 3 * 128 * 2 * 64 * 2 * PS_PER_US // rate)  # lanes x hops x keys, values
    assert passing[1] - passing[0] > latencies[0] // 3
    assert latencies[1] - latencies[0] < (passing[1] - passing[0]) // 10


def test_members_that_expect_keys_only_after_they_sent_theirs_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = _Walk.run
    wrong = mutant(right, "coming += islice(upcoming, 1)", "pass")
    monkeypatch.setattr(right, "__code__", wrong.__code__)
    with pytest.raises(DeadlockError, match="room to send to 'E'"):
        _run(length=512, key_block=128, head_dim=128)


def test_zigzag_balances_what_a_causal_mask_leaves() -> None:
    zigzag, contiguous = (
        _run(length=512, order=order, block=64, q_heads=8).latency_ps for order in ORDERS
    )
    assert zigzag < contiguous


@given(deal=deals)
def test_every_token_is_dealt_once(deal: RingDeal) -> None:
    members = range(deal.num_members)
    dealt = [token for m in members for part in deal.parts(m) for token in deal.tokens(part)]
    assert sorted(dealt) == list(range(deal.length))


@given(deal=deals)
def test_spreading_and_collecting_changes_nothing(deal: RingDeal) -> None:
    array = np.random.default_rng(0).integers(0, 99, (2, 3, deal.length, 4))
    spread = deal_tokens(array, deal.table, deal.part_size)
    assert spread.shape == (deal.num_members, 2, deal.num_parts, 3, deal.part_size, 4)
    np.testing.assert_array_equal(collect_tokens(spread, deal.table, deal.length), array)


def test_what_has_to_come_in_is_what_the_last_tokens_see() -> None:
    assert RingDeal(64, 4, "contiguous").num_received(causal=True) == 48
    assert RingDeal(64, 4, "zigzag").num_received(causal=True) == 48
    assert RingDeal(10, 4, "contiguous").num_received(causal=True) == 9
    assert RingDeal(10, 4, "contiguous").num_received(causal=False) == 9


@pytest.mark.parametrize("causal", [True, False])
def test_the_bound_counts_the_pairs_that_a_mask_leaves(causal: bool) -> None:
    """Two products of 32 channels in 4 heads, by 4 units of 16 x 16 x 16 multiply-adds a ns."""
    places = np.arange(100)
    pairs = int(np.sum(places[:, None] >= places[None, :])) if causal else 100 * 100
    rates = _run(causal=causal).bound.rates
    assert rates["GEMM unit"] == pairs * 4 * 2 * 32 * 1000 // (16**3 * 4)
    cycles = 1 + 1 + 4 + 1  # of an element: greatest, difference, power, sum
    assert rates["vector unit"] == pairs * 4 * cycles * 1000 // (512 * 4)


def test_a_ring_of_one_is_refused() -> None:
    with pytest.raises(BenchError, match="a ring of one sip, expected at least two members; set"):
        _run(ring="sip")
    with pytest.raises(BenchError, match="1 KV heads for the 2 cubes of a SIP"):
        _run(SIPS, ring="sip", sips=0, cubes=2, kv_heads=1)
