"""The sample of `make mutate`: what is drawn, and what a mutant is."""

import ast
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="in the extra `check`")

from tools.mutate.sample import SOURCE, Mutant, draw_mutants

TEXT = '''"""A module."""

LIMIT: int | None = 3


def grow(size: int | None = 4, *, by: int = 2) -> int | None:
    """Add."""
    if size is None:
        return None
    return size + by if size < LIMIT else size
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / SOURCE / "engine"
    folder.mkdir(parents=True)
    (folder / "grow.py").write_text(TEXT)
    return tmp_path


def drawn(root: Path, seed: int = 1) -> list[Mutant]:
    return draw_mutants(root, ("engine",), seed, 100)


def test_every_mutant_is_another_program(root: Path) -> None:
    trees = [ast.dump(ast.parse(mutant.source(TEXT))) for mutant in drawn(root)]
    assert trees
    assert ast.dump(ast.parse(TEXT)) not in trees


def test_annotations_are_left_alone_and_defaults_are_not(root: Path) -> None:
    lines = [mutant.source(TEXT) for mutant in drawn(root)]
    assert all(text.count("int | None") == 3 for text in lines)
    changed = {mutant.line for mutant in drawn(root)}
    assert changed == {3, 6, 8, 10}


def test_no_place_is_drawn_twice(root: Path) -> None:
    places = [(mutant.line, mutant.column) for mutant in drawn(root)]
    assert len(places) == len(set(places))


def test_the_seed_decides_the_sample(root: Path) -> None:
    assert drawn(root, 1) == drawn(root, 1)
    assert drawn(root, 1) != drawn(root, 2)
