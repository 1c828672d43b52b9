"""The guide for KernBench's users has every name of ``tl`` with its parameters."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.interop.kernbench.language.context import KERNEL_NAMES

GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "from-kernbench.md"


def call_text(name: str, function: Callable[..., Any]) -> str:
    parameters = inspect.signature(function).parameters.values()
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return f"{name}{inspect.Signature(plain)}"


def test_the_guide_has_each_family_of_names_with_their_parameters() -> None:
    table = GUIDE.read_text().partition("| family | names |")[2].partition("\n\n")[0]
    shown = {
        family: re.findall(r"`(.*?)`", names)
        for family, names in re.findall(r"^\| (\w+) \| (.*) \|$", table, re.MULTILINE)
    }
    assert shown == {
        family: [call_text(name, function) for name, function in names.items()]
        for family, names in KERNEL_NAMES.items()
    }
