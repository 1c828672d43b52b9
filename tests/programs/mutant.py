"""A function with one mistake in its text."""

import inspect
from collections.abc import Callable
from textwrap import dedent
from typing import Any


def mutant(function: Callable[..., Any], text: str, mistake: str) -> Callable[..., Any]:
    """The function as it would be if its author had written ``mistake`` for ``text``."""
    source = dedent(inspect.getsource(function))
    assert source.count(text) == 1, f"{text!r} is {source.count(text)} times in the function"
    namespace = dict(function.__globals__)
    wrong = compile(source.replace(text, mistake), function.__code__.co_filename, "exec")
    exec(wrong, namespace)
    result: Callable[..., Any] = namespace[function.__name__]
    return result
