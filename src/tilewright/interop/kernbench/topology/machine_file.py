"""The machine file that a topology becomes: what differs from its base, beside the source keys."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from textwrap import TextWrapper

from tilewright.interop.kernbench.topology.keys import key_text
from tilewright.interop.kernbench.topology.reading import Setting
from tilewright.machine.file.write import quantity_text, word_text
from tilewright.machine.spec import MachineSpec
from tilewright.machine.spec.field import Spec

_WRAPPER = TextWrapper(
    96,
    initial_indent="#   ",
    subsequent_indent="#   ",
    break_long_words=False,
    break_on_hyphens=False,
)


@dataclass(frozen=True, slots=True)
class ImportedText:
    """What an imported machine file says."""

    base_name: str  # preset that the file extends
    file_name: str  # topology that it comes from, without directory
    spec: MachineSpec
    changes: Mapping[str, Setting]  # by field
    without_effect: Mapping[str, str]  # reason by key of the topology


def changed_settings(settings: Mapping[str, Setting], base: MachineSpec) -> dict[str, Setting]:
    """Return the settings whose value the base does not have anyway."""
    return {name: one for name, one in settings.items() if _value_at(base, name) != one.value}


def imported_text(text: ImportedText) -> str:
    """Write the machine file; equal inputs give equal bytes."""
    source = " ".join(text.file_name.split())
    lines = [
        f"# {text.spec.name}: imported from the KernBench topology {source}.",
        f"# It says what differs from {text.base_name}; a comment names the key of the topology.",
        f"extends: {text.base_name}",
        f"name: {word_text(text.spec.name)}",
        f"description: {word_text(text.spec.description)}",
    ]
    lines += _section_lines(text.spec, (), text.changes)
    return "\n".join([*lines, *_idle_lines(text.without_effect)]) + "\n"


def _idle_lines(without_effect: Mapping[str, str]) -> Iterator[str]:
    """Write the keys without effect as comments, all of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for key, reason in without_effect.items():
        by_reason.setdefault(reason, []).append(key)
    if by_reason:
        yield from ("", "# Keys of the topology that have no effect here:")
    for reason, keys in by_reason.items():
        yield f"# - {reason}:"
        yield from _WRAPPER.wrap(", ".join(keys))


def _section_lines(
    spec: Spec, path: tuple[str, ...], changes: Mapping[str, Setting]
) -> Iterator[str]:
    indent = "  " * len(path)
    for name in type(spec).model_fields:
        value, below = getattr(spec, name), (*path, name)
        field = ".".join(below)
        if isinstance(value, Spec):
            lines = list(_section_lines(value, below, changes))
            if lines:
                yield from ([""] if not path else [])
                yield f"{indent}{name}:"
                yield from lines
        elif field in changes:
            line = f"{indent}{name}: {_value_text(value, name)}"
            yield f"{line:<32} # {_comment(changes[field])}"


def _value_text(value: object, name: str) -> str:
    match value:
        case int():
            return quantity_text(value, name)
        case tuple():
            return "[" + ", ".join(str(one) for one in value) + "]"
        case _:
            return word_text(str(value))


def _comment(setting: Setting) -> str:
    key = key_text(setting.key)
    return f"{key} is absent: KernBench's default" if setting.is_default else key


def _value_at(spec: MachineSpec, field: str) -> object:
    value: object = spec
    for name in field.split("."):
        value = getattr(value, name)
    return value
