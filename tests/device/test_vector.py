from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.vector import COST_TABLE, VectorLanes, VectorUnit, build_vector
from tilewright.errors import RegistryError, ServerError, UnitError
from tilewright.machine.spec import TcmSpec, VectorSpec
from tilewright.units import DTYPE_BITS


@dataclass
class Scripted:
    """A user's block that returns what the test wants."""

    answer: object
    asked: list[tuple[object, ...]] = field(default_factory=list)

    def cycles(self, op: str, elements: int, dtype: str) -> int:
        self.asked.append((op, elements, dtype))
        return self.answer  # type: ignore[return-value]


@given(
    op=st.sampled_from(sorted(COST_TABLE)),
    elements=st.integers(1, 10**6),
    dtype=st.sampled_from(sorted(DTYPE_BITS)),
    hz=st.integers(10**6, 10**12),
)
def test_a_hold_ends_at_the_clock_edge_of_its_cycles(
    op: str, elements: int, dtype: str, hz: int
) -> None:
    unit = build_vector("pe0.vector", VectorSpec(hz=hz), TcmSpec())
    assert isinstance(unit.block, VectorLanes)
    exact_ps = Fraction(unit.block.cycles(op, elements, dtype) * 10**12, hz)
    assert unit.hold_ps(op, elements, dtype) == ceil(exact_ps) >= 1


def test_moves_go_at_the_rate_of_the_tcm_beside_the_unit() -> None:
    slow = TcmSpec(write_bytes_per_us=128_000)
    assert build_vector("v", VectorSpec(), TcmSpec()).hold_ps("trans", 4096, "f32") == 32_000
    assert build_vector("v", VectorSpec(), slow).hold_ps("trans", 4096, "f32") == 128_000


@pytest.mark.parametrize("answer", [0, -1, 1.5, True, None])
def test_nonsense_from_a_user_s_block_is_refused(answer: object) -> None:
    expected = rf"pe0\.vector: found {answer} returned for cycles\('mine', 3, 'f16'\)"
    with pytest.raises(ServerError, match=expected):
        VectorUnit("pe0.vector", 10**9, Scripted(answer)).hold_ps("mine", 3, "f16")


def test_a_user_s_block_may_know_ops_of_its_own_but_gets_no_empty_work() -> None:
    block = Scripted(3)
    unit = VectorUnit("pe0.vector", 10**9, block)
    assert unit.hold_ps("mine", 3, "f16") == 3_000
    with pytest.raises(UnitError, match=r"pe0\.vector: found elements = 0"):
        unit.hold_ps("mine", 0, "f16")
    assert block.asked == [("mine", 3, "f16")]
    with pytest.raises(RegistryError, match="found op 'mine'"):
        build_vector("pe0.vector", VectorSpec(), TcmSpec()).hold_ps("mine", 3, "f16")
