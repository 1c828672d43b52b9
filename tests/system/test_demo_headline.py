"""The demonstration as a stranger runs it, and the README that shows what it prints."""

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tilewright.cli.demo import view
from tilewright.engine import native_built
from tilewright.machine.build import build_machine
from tilewright.machine.parse import parse_machine
from tilewright.records.demo import DemoRecord
from tilewright.report.decode_page_plot import draw_quality_over_latency
from tilewright.report.decode_page_style import LIGHT_COLOURS
from tilewright.studies.demo import PAGE_FILE, TRACE_FILE
from tilewright.studies.demo_page import page_of
from tilewright.studies.demo_words import meaning_of

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "demo.svg"
WIDTH = 80

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(not native_built(), reason="the README has the figures of the native core"),
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("headline")


@pytest.fixture(scope="module")
def record(directory: Path) -> DemoRecord:
    command = (sys.executable, "-m", "tilewright.cli", "demo", "--json", "--out", str(directory))
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return DemoRecord.model_validate_json(run.stdout)


def readme_words() -> str:
    return " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


def test_the_demo_leaves_a_page_and_a_trace(record: DemoRecord, directory: Path) -> None:
    assert record.ok
    assert {file.name for file in directory.iterdir()} == {PAGE_FILE, TRACE_FILE}


def test_the_table_of_the_readme_is_what_the_demo_prints(record: DemoRecord) -> None:
    printed = StringIO()
    Console(width=WIDTH, file=printed).print(view(record))
    shown = " ".join(printed.getvalue().split())
    table = shown[shown.index("flow needles") : shown.index(meaning_of(record)[0][:20])]
    assert table.strip() in readme_words()


def test_the_readme_says_what_the_demo_says_that_it_means(record: DemoRecord) -> None:
    for sentence in meaning_of(record):
        assert sentence in readme_words()


def test_the_picture_of_the_readme_is_what_the_page_shows(
    record: DemoRecord, request: pytest.FixtureRequest
) -> None:
    page = page_of(record, build_machine(parse_machine(record.machine)), ())
    drawn = draw_quality_over_latency(page, LIGHT_COLOURS)
    if request.config.getoption("update_golden"):
        PICTURE.write_text(drawn, encoding="utf-8")
    assert PICTURE.read_text(encoding="utf-8") == drawn
