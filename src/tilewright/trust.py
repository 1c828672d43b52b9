"""Whether code of files may run: ``--no-code`` and the variable ``TILEWRIGHT_NO_CODE`` refuse it.

Every place that runs code which a file brings or names asks `check_code_allowed` first;
``docs/trust.md`` lists these places. The environment holds the answer, so that processes that a
command starts have the same.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.errors import CodeRefusedError

__all__ = ("NO_CODE_VARIABLE", "check_code_allowed", "is_code_refused", "refused_code")

NO_CODE_VARIABLE = "TILEWRIGHT_NO_CODE"
"""Any value but the empty one and 0 refuses code of files."""


def is_code_refused() -> bool:
    """Return whether no code of files may run."""
    return os.environ.get(NO_CODE_VARIABLE, "") not in ("", "0")


def check_code_allowed(where: str, what: str) -> None:
    """Raise CodeRefusedError if code of files is refused.

    ``where`` is the file and line, ``what`` the code that would run.
    """
    if not is_code_refused():
        return
    expected = f"no code to run, as --no-code or {NO_CODE_VARIABLE} says"
    fix = "read it first; if you trust it, leave --no-code out and the variable empty"
    raise CodeRefusedError(where, what, expected, fix)


@contextmanager
def refused_code() -> Iterator[None]:
    """Refuse code of files while the block runs."""
    before = os.environ.get(NO_CODE_VARIABLE)
    os.environ[NO_CODE_VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[NO_CODE_VARIABLE]
        else:
            os.environ[NO_CODE_VARIABLE] = before
