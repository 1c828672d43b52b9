"""Links between documents lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def anchors_of(document: str) -> set[str]:
    """As the usual viewers make them: lower case, no punctuation, hyphens for spaces."""
    headings = HEADING.findall(FENCE.sub("", document))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(path: Path, document: str) -> Iterator[str]:
    for target, anchor in LINK.findall(FENCE.sub("", document)):
        file = path if not target else path.parent / target
        if not file.exists():
            yield target
        elif anchor and anchor not in anchors_of(document if not target else file.read_text()):
            yield f"{target}#{anchor}"


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in DOCUMENTS]
)
def test_every_link_of_a_document_leads_to_a_file_and_a_heading_that_exist(path: Path) -> None:
    assert list(dead_links(path, path.read_text())) == []


def test_a_missing_file_and_a_missing_heading_are_found(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# 2. Here, `now`\n\n```text\n# not a heading\n```\n")
    links = "[a](b.md#2-here-now) [b](c.md) [c](b.md#there) [d](b.md#not-a-heading) [e](#top)"
    text = f"# Top\n{links} [f](https://example.org) [g](#bottom)\n"
    dead = ["c.md", "b.md#there", "b.md#not-a-heading", "#bottom"]
    (tmp_path / "a.md").write_text(text)
    assert list(dead_links(tmp_path / "a.md", text)) == dead
