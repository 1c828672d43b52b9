"""A record that the tests of files may write, read, cut and replace."""

import pytest

from tilewright.records import RunRecord, Totals, Versions, WhatRan


@pytest.fixture
def record() -> RunRecord:
    versions = Versions(tilewright="0", python="3", numpy="2", greenlet="3", engine="native")
    totals = Totals(time_ps=7, num_bytes=0, num_events=0)
    return RunRecord(
        what=WhatRan(command="probe"), versions=versions, totals=totals, breakdown_ps={"wire": 7}
    )
