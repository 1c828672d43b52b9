"""Import statements of a flow file: the modules that it may import, whenever a statement runs."""

import builtins
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import ModuleType

ImportNames = Callable[[], AbstractContextManager[object]]
"""Makes further modules importable while the block that it returns runs."""


def builtins_with(names: ImportNames) -> dict[str, object]:
    """Return builtins for a file, whose import statements run in a block of ``names``.

    A function keeps the builtins of the file that it stands in, so an import inside a constructor
    or a method finds the same modules as one at the top, whoever calls it and however late.
    """

    def import_in_block(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        with names():
            return builtins.__import__(name, globals, locals, fromlist or (), level)

    return {**vars(builtins), "__import__": import_in_block}
