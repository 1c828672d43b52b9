"""Measures of the code base, on sources and commands whose measures are known."""

import ast
from pathlib import Path

from tools import house
from tools.house import Source

TEXT = '''"""A module."""

import sys


class Shown:
    """A class."""

    def method(self) -> None:
        # a comment
        sys.exit()

    def _own(self) -> None: ...


class Bare: ...
'''


def source(text: str) -> Source:
    return Source(Path("file.py"), text, ast.parse(text))


def test_lines_of_code_are_neither_blank_nor_comment_docstring_or_import() -> None:
    assert house.code_lines(source(TEXT)) == 5


def test_docstrings_are_those_of_public_names() -> None:
    assert house.public_docstrings([source(TEXT)]) == 0.5  # of module, Shown, method, Bare


def test_a_class_name_with_two_owners_counts_once() -> None:
    assert house.shared_class_names([source(TEXT), source(TEXT), source("class Bare: ...")]) == 2
    assert house.shared_class_names([source(TEXT)]) == 0


def test_a_function_is_long_without_its_docstring() -> None:
    head = 'def long():\n    """Text.\n\n    More.\n    """\n'
    functions = [ast.parse(head + "    pass\n" * lines).body[0] for lines in (59, 60)]
    assert [house.is_long(each) for each in functions] == [False, True]


def test_a_walk_enters_the_files_of_its_command_alone() -> None:
    machine, program = house.walk("machine"), house.walk("program")
    assert 0 < machine["files"] < program["files"]
    assert machine["files"] < machine["functions"] < program["functions"]
