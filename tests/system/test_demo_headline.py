"""The demonstration as a stranger runs it, and the README that shows what it prints.

``pytest tests/system/test_demo_headline.py --update-golden`` brings README and picture up to date.
"""

import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from textwrap import fill

import pytest
from rich.console import Console

from tilewright.cli.command.demo import view
from tilewright.engine import native_built
from tilewright.machine.build import build_machine
from tilewright.machine.parse import parse_machine
from tilewright.records.demo import DemoRecord
from tilewright.report.decode_page.plot import draw_quality_over_latency
from tilewright.studies.demo.command import PAGE_FILE, TRACE_FILE
from tilewright.studies.demo.page import meaning_of, page_of, phases_note

ROOT = Path(__file__).parents[2]
README, PICTURE = ROOT / "README.md", ROOT / "docs" / "images" / "demo.svg"
WIDTH, README_WIDTH = 80, 100
RESULT = re.compile(
    r"(## The first result\n.*?\n```text\n)(?P<table>.*?)(```\n\n)(?P<meaning>.*?)(\n\n!\[)",
    re.DOTALL,
)
NUMBER = re.compile(r"-?\d+\.?\d*")
# what a base installation lacks
LIGHT = (
    "import sys; sys.modules.update(dict.fromkeys(('torch', 'triton', 'simpy', 'transformers')));"
    "from tilewright.cli.main import main; main()"
)

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(not native_built(), reason="the README has the figures of the native core"),
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("headline")


@pytest.fixture(scope="module")
def record(directory: Path) -> DemoRecord:
    command = (sys.executable, "-c", LIGHT, "demo", "--json", "--out", str(directory))
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return DemoRecord.model_validate_json(run.stdout)


def table_of(record: DemoRecord) -> str:
    """As a terminal of 80 columns shows it."""
    printed = StringIO()
    Console(width=WIDTH, file=printed).print(view(record))
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    head = next(place for place, line in enumerate(lines) if line.startswith("flow "))
    return "".join(f"{line}\n" for line in lines[head : head + 2 + len(record.flows)])


def readme_of(record: DemoRecord, text: str) -> str:
    """The README with the figures of a record in their place."""
    meaning = fill(" ".join(meaning_of(record)), README_WIDTH, break_on_hyphens=False)
    table = table_of(record)
    return RESULT.sub(lambda found: f"{found[1]}{table}{found[3]}{meaning}{found[5]}", text)


def test_the_demo_leaves_a_page_and_a_trace_on_a_base_installation(
    record: DemoRecord, directory: Path
) -> None:
    assert record.ok
    assert {file.name for file in directory.iterdir()} == {PAGE_FILE, TRACE_FILE}


def test_the_first_result_of_the_readme_is_what_the_demo_prints(
    record: DemoRecord, request: pytest.FixtureRequest
) -> None:
    text = README.read_text(encoding="utf-8")
    if request.config.getoption("update_golden"):
        README.write_text(readme_of(record, text), encoding="utf-8")
        return
    found = RESULT.search(text)
    assert found is not None
    assert found["table"] == table_of(record)
    assert " ".join(found["meaning"].split()) == " ".join(meaning_of(record))
    assert phases_note(record) in " ".join(text.split())


def test_the_picture_of_the_readme_is_what_the_page_shows(
    record: DemoRecord, request: pytest.FixtureRequest
) -> None:
    page = page_of(record, build_machine(parse_machine(record.machine)), ())
    drawn = draw_quality_over_latency(page)
    if request.config.getoption("update_golden"):
        PICTURE.write_text(drawn, encoding="utf-8")
    stored = PICTURE.read_text(encoding="utf-8")
    assert NUMBER.sub("", stored) == NUMBER.sub("", drawn)
    # the heights of letters differ a little between versions of matplotlib
    numbers = [[*map(float, NUMBER.findall(text))] for text in (stored, drawn)]
    assert numbers[0] == pytest.approx(numbers[1], abs=2)
