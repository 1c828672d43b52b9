"""What an unquoted word of a machine file means: one meaning, or a refusal that says what to write.

YAML 1.1 and 1.2 disagree on ``on``, ``010`` and ``1:30``; here such words are no values at all.
"""

import re
from typing import NamedTuple

Plain = str | int | bool | None

MAX_INT = 2**63 - 1

# control characters, halves of surrogate pairs, and line ends that editors do not count as such
FORBIDDEN = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)

_WORDS: dict[str, Plain] = {"true": True, "false": False, "null": None}
_AMBIGUOUS = {
    **dict.fromkeys(("yes", "on", "true"), "true"),
    **dict.fromkeys(("no", "off", "false"), "false"),
    **dict.fromkeys(("null", "~"), "null"),
}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*(?:_[0-9]+)*)")
_FRACTION = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|nan)",
    re.IGNORECASE,
)
_OTHER_NUMBER = re.compile(
    r"[-+]?(?:[0-9][0-9_]*|0[xob][0-9a-f_]+|[0-9][0-9_]*(?::[0-9]+)+(?:\.[0-9]*)?)", re.IGNORECASE
)


class Refusal(NamedTuple):
    """Three of the four parts of an error; who asked knows the place."""

    found: str
    expected: str
    fix: str


def resolve_plain(text: str) -> Plain | Refusal:
    """The value of an unquoted word.

    >>> resolve_plain("1_024"), resolve_plain("12.5 ns"), resolve_plain("null")
    (1024, '12.5 ns', None)
    >>> resolve_plain("yes").fix
    'write true, or "yes" in quotes for text'
    """
    if not text:
        fix = "write null if you mean that, or remove the key"
        return Refusal("no value", "a value", fix)
    if text in _WORDS:
        return _WORDS[text]
    if text.lower() in _AMBIGUOUS:
        fix = f'write {_AMBIGUOUS[text.lower()]}, or "{text}" in quotes for text'
        return Refusal(f"the word {text}", "a word that means one thing", fix)
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FRACTION.fullmatch(text):
        fix = 'write a whole number, or text with a unit: "12.5 ns"'
        return Refusal(f"the number {_short(text)}", "a whole number", fix)
    if _OTHER_NUMBER.fullmatch(text):
        fix = f'write it in decimal digits, or "{_short(text)}" in quotes for text'
        return Refusal(f"the number {_short(text)}", "a plain decimal number", fix)
    return text


def _integer(text: str) -> int | Refusal:
    # the length first: Python refuses to convert thousands of digits
    if len(text) > 2 * len(str(MAX_INT)) or abs(int(text)) > MAX_INT:
        expected = f"a number of at most {MAX_INT}"
        return Refusal(f"the number {_short(text)}", expected, "no field takes as much")
    return int(text)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
