"""A fixed number of inputs of each generator of ``make fuzz``: none is a finding.

A finding is repeated by ``make fuzz ONLY=name SEED=0 INDEX=index``.
"""

import pytest

from tests.fuzz.session import Session
from tests.fuzz.table import GENERATORS
from tests.fuzz.worker import Task

pytestmark = pytest.mark.timeout(300)  # a hang is seen by the session, which says where


@pytest.mark.parametrize("name", GENERATORS)
def test_no_input_of_a_generator_is_a_finding(name: str) -> None:
    generator = GENERATORS[name]
    session = Session({name: generator})
    session.run_inputs([Task(name, index) for index in range(generator.ci_inputs)])
    assert [(each.task, each.text) for each in session.findings] == []
    assert session.shares[name].inputs == generator.ci_inputs
