from dataclasses import fields

import pytest

from tilewright.engine.dram.spec import BankedSpec, BankedTimingSpec
from tilewright.machine.spec import HbmSpec
from tilewright.machine.spec.hbm import HbmTimingSpec
from tilewright.native import native_built, native_core

TIMING = [each.name for each in fields(BankedTimingSpec)]


def test_a_machine_file_names_every_distance_that_the_engine_has() -> None:
    clocks = [name for name in HbmTimingSpec.model_fields if name != "clock_ps"]
    assert [name.replace("_clocks", "_ps") for name in clocks] == TIMING
    assert list(HbmTimingSpec().distances_ps) == TIMING


@pytest.mark.skipif(not native_built(), reason="no compiled core")
def test_the_compiled_core_reads_every_distance() -> None:
    assert list(native_core().TIMING_FIELDS) == TIMING


def test_a_machine_file_names_all_of_a_memory_that_its_slices_share() -> None:
    of_slice = {"pseudo_channels", "rows", "timing", "refresh"}
    assert {each.name for each in fields(BankedSpec)} - of_slice <= set(HbmSpec.model_fields)
