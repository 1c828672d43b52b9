"""Canonical JSON: same content, same bytes, same hash."""

import hashlib
import json

from pydantic import BaseModel

from tilewright.errors import RecordError

__all__ = ("canonical_json", "content_hash")


def canonical_json(content: object) -> bytes:
    """Sorted keys, no spaces, UTF-8, one line. ``content`` is a document or plain JSON data.

    >>> canonical_json({"b": 1, "a": [True, None]})
    b'{"a":[true,null],"b":1}'
    """
    plain = content.model_dump(mode="json") if isinstance(content, BaseModel) else content
    try:
        text = json.dumps(
            plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return text.encode()
    except (TypeError, ValueError) as error:  # ValueError: NaN, a circle, a lone surrogate
        fix = "keep to objects with string keys, arrays, finite numbers, strings"
        raise RecordError("canonical JSON", str(error), "plain JSON data", fix) from error


def content_hash(content: object) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal.

    >>> content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(canonical_json(content)).hexdigest()
