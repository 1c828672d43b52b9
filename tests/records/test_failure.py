from tilewright.errors import MissingExtraError
from tilewright.records import canonical_json, describe_failure


def test_a_failure_is_a_document_with_the_class_and_the_four_parts() -> None:
    error = MissingExtraError("bench engine", "simpy", "bench")
    parts = (
        b'{"expected":"the extra \'bench\' installed",'
        b'"fix":"run: pip install --editable \'.[bench]\' in the checkout, or make bench",'
        b'"found":"no library \'simpy\'","type":"MissingExtraError","where":"bench engine"}'
    )
    expected = b'{"error":' + parts + b',"ok":false,"problems":[' + parts + b"]}"
    assert canonical_json(describe_failure(error)) == expected
