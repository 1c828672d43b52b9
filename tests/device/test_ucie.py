import pytest

from tilewright.device.ucie import ucie_raw_rate
from tilewright.errors import UnitError


@pytest.mark.parametrize(("lanes", "gb_per_s"), [(16, 64), (64, 256)])
def test_a_module_at_32_gt_per_s_has_the_stated_raw_rate(lanes: int, gb_per_s: int) -> None:
    assert ucie_raw_rate(lanes, megatransfers_per_s=32_000) == gb_per_s * 1_000


def test_a_module_without_lanes_or_transfers_is_refused() -> None:
    with pytest.raises(UnitError, match="ucie: found lanes = 0"):
        ucie_raw_rate(0, megatransfers_per_s=1)
    with pytest.raises(UnitError, match="ucie: found megatransfers_per_s = 0"):
        ucie_raw_rate(1, megatransfers_per_s=0)
