import platform
from importlib import metadata

import pytest

from tilewright.errors import MissingExtraError
from tilewright.records import canonical_json, describe_failure, installed_versions


def test_a_failure_is_a_document_with_the_class_and_the_four_parts() -> None:
    error = MissingExtraError("bench engine", "simpy", "bench")
    parts = (
        b'{"expected":"the extra \'bench\' installed",'
        b'"fix":"run: pip install --editable \'.[bench]\' in the checkout, or make bench",'
        b'"found":"no library \'simpy\'","type":"MissingExtraError","where":"bench engine"}'
    )
    expected = b'{"error":' + parts + b',"ok":false,"problems":[' + parts + b"]}"
    assert canonical_json(describe_failure(error)) == expected


def test_the_versions_of_this_process_are_recorded() -> None:
    versions = installed_versions(engine="reference")
    assert versions.engine == "reference"
    assert versions.python == platform.python_version()
    assert versions.tilewright


@pytest.mark.parametrize("installed", ["4.1.1", None])
def test_the_peer_of_the_benchmarks_is_recorded_if_it_is_there(
    monkeypatch: pytest.MonkeyPatch, installed: str | None
) -> None:
    def version(distribution: str) -> str:
        if distribution != "simpy":
            return "1"
        if installed is None:
            raise metadata.PackageNotFoundError(distribution)
        return installed

    monkeypatch.setattr(metadata, "version", version)
    assert installed_versions(engine="native").simpy == installed
