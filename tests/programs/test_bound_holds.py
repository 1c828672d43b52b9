"""No run is below its bound, whatever the machine, the program and its sizes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs.bound_cases import NAMES, cases, run

pytestmark = pytest.mark.timeout(600)  # `make test-all` runs many more examples
NUM_EXAMPLES = 2 * settings().max_examples // len(NAMES)  # 100 and 2000 of all in the two profiles


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=NUM_EXAMPLES)
@given(data=st.data())
def test_no_run_is_below_its_bound(name: str, data: st.DataObject) -> None:
    found = run(data.draw(cases(name)))
    assert found.latency_ps >= found.bound_ps
