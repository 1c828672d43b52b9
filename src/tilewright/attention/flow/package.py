"""Flow files inside a package: their relative imports, without a trace left behind."""

import ast
import builtins
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

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


_load_ids = count()  # each load has names of its own, so that a file can be loaded again


class FlowPackage(NamedTuple):
    """A flow file as a module of a package, by its directories from the outermost on."""

    directories: tuple[Path, ...]
    file: Path


def find_package(file: Path, tree: ast.AST) -> FlowPackage | None:
    """Return the package that the relative imports of a file need; None if it has none.

    As many directories are packages as the imports have dots, and those around them that have an
    ``__init__.py``.
    """
    levels = [node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    depth = max(levels, default=0)
    if depth == 0:
        return None
    parents = file.resolve().parents
    while all((path / "__init__.py").is_file() for path in parents[depth - 1 : depth + 1]):
        depth += 1
    return FlowPackage(tuple(reversed(parents[:depth])), file.resolve())


def import_from_package(package: FlowPackage, names: ImportNames) -> str:
    """Import the file by the import system and return its module's name, gone again by then.

    Import statements of the package's files run in a block of ``names``, now and later.
    """
    root = f"flow_package_{next(_load_ids)}"
    finder = _Finder(root, package.directories[0], names)
    stem = [] if package.file.stem == "__init__" else [package.file.stem]
    name = ".".join([root, *(path.name for path in package.directories[1:]), *stem])
    with finder.installed():
        importlib.import_module(name)
    return name


class _Source(SourceFileLoader):
    """A loader of the text as it is now, without files of compiled code."""

    def __init__(self, builtins: dict[str, object], fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._builtins = builtins

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._builtins
        super().exec_module(module)


class _Finder:
    """Finds the modules of one package, under a name that nobody else has."""

    def __init__(self, root: str, directory: Path, names: ImportNames) -> None:
        self._root = root
        self._directory = directory
        self._names = names
        self._source = partial(_Source, builtins_with(self.installed))
        self._modules: dict[str, ModuleType] = {}  # imported in a block that is over

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Make the package and further names importable while the block runs.

        Modules are imported once: a later block finds those of the earlier ones.
        """
        with self._names():
            if self in sys.meta_path:  # an import inside an import
                yield
                return
            sys.meta_path.insert(0, self)
            sys.modules.update(self._modules)
            try:
                yield
            except ImportError as error:
                error.msg = self._readable(error.msg)
                raise
            finally:
                sys.meta_path.remove(self)
                own = [name for name in sys.modules if name.partition(".")[0] == self._root]
                self._modules = {name: sys.modules.pop(name) for name in own}

    def _readable(self, message: str) -> str:
        """Return a message with module names as the author knows them."""
        return message.replace(f"{self._root}.", ".").replace(self._root, self._directory.name)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del target
        if fullname.partition(".")[0] != self._root:
            return None
        if fullname == self._root:
            return self._package(fullname, self._directory)
        for directory in path or ():
            spec = FileFinder(directory, (self._source, [".py"])).find_spec(fullname)  # type: ignore[arg-type]  # called like a class
            if spec is not None:
                inner = Path(directory) / fullname.rpartition(".")[2]
                return self._package(fullname, inner) if spec.loader is None else spec
        return None

    def _package(self, fullname: str, directory: Path) -> ModuleSpec:
        """A package with the code of its ``__init__.py``, or without any."""
        file = directory / "__init__.py"
        loader = self._source(fullname, str(file)) if file.is_file() else None
        spec = ModuleSpec(fullname, loader, origin=str(file), is_package=True)
        spec.submodule_search_locations = [str(directory)]
        spec.has_location = loader is not None
        return spec
