"""A record that the tests of files may write, read, cut and replace."""

import pytest

from tests.records.run_records import run_record
from tilewright.records import RunRecord


@pytest.fixture
def record() -> RunRecord:
    return run_record()
