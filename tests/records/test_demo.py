import pytest
from pydantic import ValidationError

from tests.studies.demo_records import demo_record
from tilewright.records import canonical_json
from tilewright.records.demo import DemoRecord


def test_the_record_reads_back_as_it_was() -> None:
    record = demo_record()
    assert DemoRecord.model_validate_json(canonical_json(record)) == record


def test_a_record_whose_steps_are_of_other_contexts_is_refused() -> None:
    document = demo_record().model_dump()
    document["sizes"]["contexts"] = (1024, 2048)
    with pytest.raises(ValidationError, match=r"steps of 'dense' are not those"):
        DemoRecord.model_validate(document)


@pytest.mark.parametrize("values_ok", [True, False])
def test_the_verdict_is_that_of_the_values(values_ok: bool) -> None:
    document = demo_record(values_ok=values_ok).model_dump()
    document["ok"] = not values_ok
    with pytest.raises(ValidationError, match="ok must be true if, and only if"):
        DemoRecord.model_validate(document)
