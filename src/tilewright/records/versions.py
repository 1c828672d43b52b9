"""Which software a record comes from."""

import platform
from importlib import metadata

from tilewright.records.document import Document


class Versions(Document):
    """What must be equal for two records to be comparable."""

    tilewright: str
    python: str
    numpy: str
    greenlet: str
    simpy: str | None = None  # the peer of the benchmarks; None: not installed
    engine: str  # which of the engines ran: "reference", "native", or both


def installed_version(distribution: str = "tilewright") -> str:
    return metadata.version(distribution)


def installed_versions(*, engine: str) -> Versions:
    """The versions of this process; ``engine`` is what ran in it."""
    return Versions(
        tilewright=installed_version(),
        python=platform.python_version(),
        numpy=installed_version("numpy"),
        greenlet=installed_version("greenlet"),
        simpy=_version_if_installed("simpy"),
        engine=engine,
    )


def _version_if_installed(distribution: str) -> str | None:
    try:
        return installed_version(distribution)
    except metadata.PackageNotFoundError:
        return None
