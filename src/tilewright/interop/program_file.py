"""Python files of users as programs: loaded under a name of ours, run beside their own folder."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

from tilewright.errors import ProgramError, TilewrightError, meant
from tilewright.interop.foreign_names import ForeignNames
from tilewright.language.source import add_place
from tilewright.trust import check_code_allowed

MODULE = "tilewright_program"
EXTRAS: Mapping[str, str] = {  # by package: the extra of ours that it comes with
    "torch": "bench",
    "triton": "bench",
    "simpy": "bench",
    "gguf": "models",
    "safetensors": "models",
    "tokenizers": "models",
}


class ProgramFile:
    """One file, loaded once: its module, and the modules beside it that it imports.

    ``names`` are module paths of a foreign package that the file may import.
    """

    def __init__(self, file: Path, content: bytes, names: ForeignNames | None = None) -> None:
        self.file = file
        self._content = content
        self._names = names
        self._beside: dict[str, ModuleType] = {}  # modules of its folder, while it does not run
        self.module = ModuleType(MODULE)
        self.module.__file__ = str(file)

    def load(self) -> ModuleType:
        """Run the text of the file and return its module. Mistakes are told by line.

        Raises CodeRefusedError, before anything runs, where code of files is refused.
        """
        check_code_allowed(f"{self.file} line 1", "a Python program, all of which would run")
        with self.running():
            sys.modules[MODULE] = self.module  # who looks for the module of a class finds it
            exec(compile(self._content, str(self.file), "exec"), vars(self.module))
        return self.module

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let code of the file run in the block: its imports are found, its errors told by line."""
        names = nullcontext() if self._names is None else self._names.installed()
        with self._told_by_line(), self._in_folder(), names:
            yield

    @contextmanager
    def _in_folder(self) -> Iterator[None]:
        """Let imports find what lies beside the file, as when Python itself runs it.

        Modules of the folder are this program's alone: another program, or this one loaded anew,
        imports them again.
        """
        folder = str(self.file.resolve().parent)
        before = set(sys.modules)
        sys.path.insert(0, folder)
        sys.modules.update(self._beside)
        try:
            yield
        finally:
            sys.path.remove(folder)
            added = [name for name in sys.modules if name not in before and name != MODULE]
            own = [name for name in added if _is_in(sys.modules[name], folder)]
            self._beside |= {name: sys.modules.pop(name) for name in own}

    @contextmanager
    def _told_by_line(self) -> Iterator[None]:
        """Let errors say where in the user's file they come from, and show no line of ours."""
        try:
            yield
        except SyntaxError as error:
            where = f"{error.filename or self.file}:{error.lineno or 1}"  # none: a zero byte
            found = f"a syntax error ({error.msg})"
            raise ProgramError(where, found, "Python", "correct it") from None
        except TilewrightError as error:
            place = self._line_of(error)
            if place and str(self.file) not in error.where:
                add_place(error, place)
            raise
        except (Exception, SystemExit) as error:
            where = self._line_of(error) or str(self.file)
            notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
            found = f"{type(error).__name__}: {error}{notes}"
            expected = "a program that runs to its end"
            raise ProgramError(where, found, expected, _remedy(error)) from error

    def _line_of(self, error: BaseException) -> str:
        """Return the innermost line of the file that an error came through; else nothing."""
        place = ""
        for frame, line in walk_tb(error.__traceback__):
            if frame.f_code.co_filename == str(self.file):
                place = f"{self.file}:{line} in {frame.f_code.co_name}"
        return place


def _remedy(error: BaseException) -> str:
    """Return what to do about an error of Python: a package to install, a name that is near."""
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        if package in EXTRAS:
            extra = EXTRAS[package]
            return f"install {package}: run pip install --editable '.[{extra}]' in the checkout"
        return f"install {package or 'it'}, or correct the import"
    if isinstance(error, AttributeError):
        known = [name for name in dir(error.obj) if not name.startswith("_")]
        return meant(error.name or "", known, "correct the program")
    return "correct the program"


def _is_in(module: ModuleType, folder: str) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve().is_relative_to(folder)
