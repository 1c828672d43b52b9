"""Module paths of a foreign package, importable inside a block and never in place of a real one."""

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import MappingProxyType, ModuleType

from tilewright.errors import RegistryError, UnknownAttributeError, UnknownImportError

__all__ = ("LIBRARY", "ForeignNames", "public_names")

Names = Mapping[str, object]

LIBRARY = str(Path(__file__).parents[1])
"""The folder of tilewright: no file below it imports foreign names or is a user's."""


def public_names(module: ModuleType) -> dict[str, object]:
    """Return the names in a module's ``__all__`` with their values."""
    return {name: getattr(module, name) for name in module.__all__}


class ForeignNames(MetaPathFinder, Loader):
    """The modules of one foreign package, each a view on names of ours.

    ``table`` maps a path below the package (``""`` is the package itself) to names with values, or
    to a module of ours, whose ``__all__`` is taken. Paths above a path of the table exist too.

    >>> names = ForeignNames("other", {"": {"answer": 42}, "deep.down": {"pi": 3}})
    >>> with names.installed() as imported:
    ...     from other.deep.down import pi
    >>> pi, sorted(imported), "other" in sys.modules
    (3, ['other', 'other.deep', 'other.deep.down'], False)

    A path or name that the table does not have is an `UnknownImportError` (an ImportError) in an
    import statement, and an `UnknownAttributeError` (an AttributeError) anywhere else.
    """

    def __init__(self, package: str, table: Mapping[str, Names | ModuleType]) -> None:
        self.package = package
        self.table: Mapping[str, Names] = MappingProxyType(_complete(package, table))
        """Names with values by full path, ``package`` included."""
        self._modules: dict[str, ModuleType] = {}  # made at first use, then the same in every block
        self._imported: set[str] = set()  # paths imported in the innermost block

    @contextmanager
    def installed(self) -> Iterator[set[str]]:
        """Make the package importable while the block runs, and yield what the block imports.

        The set has full module paths, of blocks inside too, and grows as imports run. Blocks nest.
        Afterwards ``sys.modules`` has what it had before, also after an error. Raises RegistryError
        if another package of this name has been imported.
        """
        was_importable = self in sys.meta_path
        self.install()
        outer_modules, outer_imported = self._take_modules(), self._imported
        imported = self._imported = set()
        try:
            yield imported
        finally:
            if not was_importable:
                sys.meta_path.remove(self)
            self._take_modules()
            sys.modules.update(outer_modules)
            self._imported = outer_imported
            outer_imported |= imported

    def install(self) -> None:
        """Make the package importable until ``remove``. A second call changes nothing.

        Raises RegistryError if another package of this name has been imported.
        """
        self._check_free()
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Undo ``install``. Without it nothing happens; a real package is left alone."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self._take_modules()

    def module(self, path: str) -> ModuleType:
        """Return the module of a full path of the table, inside a block or outside."""
        if path not in self._modules:
            self._modules[path] = self._build(path)
        return self._modules[path]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of the table; refuse any other below the package."""
        del path, target
        if fullname in self.table:
            self._imported.add(fullname)
            return ModuleSpec(fullname, self, is_package=True)
        if not fullname.startswith(f"{self.package}."):
            return None
        parent, _, name = fullname.rpartition(".")
        raise UnknownImportError(_importing_line(), *self._unknown(parent, name))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the one module that there is for the path of a spec."""
        return self.module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a module has its names from the start."""

    def _build(self, path: str) -> ModuleType:
        module = ModuleType(path, f"Names of tilewright under a module path of {self.package}.")

        def find_missing(name: str) -> ModuleType:
            """Return a module below this one, which nobody has imported by its path yet."""
            if f"{path}.{name}" in self.table:
                return self.module(f"{path}.{name}")
            if name.startswith("__"):  # the import system and inspect ask for optional ones
                raise AttributeError(name)
            raise UnknownAttributeError(path, *self._unknown(path, name))

        module.__dict__["__getattr__"] = find_missing
        module.__dict__["__all__"] = [name for name in self.table[path] if name[0] != "_"]
        module.__dict__.update(self.table[path])
        module.__path__ = []  # a package, so that an unknown name comes to find_spec
        return module

    def _unknown(self, path: str, name: str) -> tuple[str, str, str]:
        """Return what was found, what was expected and what to do about an unknown name."""
        below = [other.rpartition(".") for other in self.table]
        known = [*self.table[path], *(child for parent, _, child in below if parent == path)]
        near = get_close_matches(name, known, n=2)
        elsewhere = [other for other, names in self.table.items() if name in names]
        if elsewhere:
            fix = f"import it from {' or '.join(elsewhere)}"
        elif near:
            fix = f"did you mean {' or '.join(map(repr, near))}?"
        else:
            fix = f"use one of these: {', '.join(sorted(known)) or '(none)'}"
        return f"no name {name!r} in {path}", "a name that is known here", fix

    def _check_free(self) -> None:
        present = sys.modules.get(self.package)
        if present is None or getattr(present.__spec__, "loader", None) is self:
            return
        found = f"{self.package} from {getattr(present, '__file__', 'elsewhere')}, already imported"
        fix = "run programs for one of the two in a process"
        raise RegistryError(f"names of {self.package}", found, "no such module yet", fix)

    def _take_modules(self) -> dict[str, ModuleType]:
        inside = [name for name in sys.modules if name.partition(".")[0] == self.package]
        return {name: sys.modules.pop(name) for name in inside}


def _complete(package: str, table: Mapping[str, Names | ModuleType]) -> dict[str, Names]:
    """Return names by full path, with an empty module for each path that is only a parent."""
    complete: dict[str, Names] = {package: {}}
    for path, names in table.items():
        parts = path.split(".") if path else []
        for depth in range(1, len(parts)):
            complete.setdefault(".".join([package, *parts[:depth]]), {})
        own = public_names(names) if isinstance(names, ModuleType) else names
        complete[".".join([package, *parts])] = MappingProxyType(dict(own))
    for path in complete:
        parent, _, name = path.rpartition(".")
        if parent and name in complete[parent]:
            found = f"a name and a module {name!r}"
            raise RegistryError(f"names of {parent}", found, "one of them", "drop the name")
    return complete


def _importing_line() -> str:
    """Return file and line of the import statement that is running."""
    machinery = (importlib.__file__, "<frozen importlib", LIBRARY)
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(machinery):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
