"""Opens a page of decode steps in a browser and measures what a reader would see.

Without a browser the test is skipped; with ``TILEWRIGHT_REQUIRE_BROWSER=1``, as in CI, that is a
failure.
"""

import json
import os
import re
import shutil
import struct
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.report.decode_page.pages import typical_page
from tilewright.machine.build import build_machine
from tilewright.machine.parse import parse_machine
from tilewright.report.decode_page.page import decode_page_text
from tilewright.report.style import COLOURS

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
IS_REQUIRED = os.environ.get("TILEWRIGHT_REQUIRE_BROWSER") == "1"
WIDTH, HEIGHT = 1200, 900

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(
        BROWSER is None and not IS_REQUIRED,
        reason=f"this machine has no browser: none of {', '.join(BROWSERS)} is installed",
    ),
]

MEASURE = """
<script>
const within = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1
  && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
  && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
const found = {outside: [], overlapping: [], figures: 0, requests: 0};
for (const svg of document.querySelectorAll("figure > svg")) {
  const frame = svg.getBoundingClientRect();
  found.figures += 1;
  const texts = [...svg.querySelectorAll("text")].map(e => [e.textContent,
    e.getBoundingClientRect()]);
  for (const [text, box] of texts) if (!within(box, frame)) found.outside.push(text);
  texts.forEach(([one, box], place) => {
    for (const [other, next] of texts.slice(place + 1))
      if (overlap(box, next)) found.overlapping.push([one, other]);
  });
}
const root = document.documentElement;
found.wider = root.scrollWidth - root.clientWidth;
found.requests = performance.getEntriesByType("resource").length;
found.ground = getComputedStyle(document.body).backgroundColor;
const result = document.createElement("pre");
result.id = "measured";
result.textContent = JSON.stringify(found);
document.body.append(result);
</script>
"""


@pytest.fixture(scope="module")
def text() -> str:
    return decode_page_text(typical_page(build_machine(parse_machine("ahbm"))))


def browse(directory: Path, *arguments: str) -> str:
    """What the browser prints; it keeps its files where the test has its own."""
    assert BROWSER is not None, "TILEWRIGHT_REQUIRE_BROWSER=1, and there is no browser"
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        f"--user-data-dir={directory / 'profile'}", f"--window-size={WIDTH},{HEIGHT}", *arguments,
    ]  # fmt: skip
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def measured(directory: Path, text: str, *arguments: str) -> dict[str, Any]:
    """Of a copy of the page that may run the script which measures it."""
    without_policy = re.sub(r"<meta http-equiv=.*?/>", "", text)
    file = directory / "measured.html"
    file.write_text(without_policy.replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    shown = browse(directory, *arguments, "--dump-dom", file.as_uri())
    match = re.search(r'<pre id="measured">(.*?)</pre>', shown, re.DOTALL)
    assert match is not None, shown[-2000:]
    found: dict[str, Any] = json.loads(unescape(match[1]))
    return found


def test_no_text_leaves_its_picture_or_lies_on_another_and_nothing_is_fetched(
    tmp_path: Path, text: str
) -> None:
    found = measured(tmp_path, text)
    assert found["figures"] == 5  # quality, stages, two usages, the machine
    assert found["outside"] == []
    assert found["overlapping"] == []
    assert found["requests"] == 0
    assert found["wider"] <= 0


def test_a_dark_screen_gets_a_dark_page_and_a_light_one_a_white_page(
    tmp_path: Path, text: str
) -> None:
    light = measured(tmp_path, text, "--blink-settings=preferredColorScheme=1")
    dark = measured(tmp_path, text, "--blink-settings=preferredColorScheme=0")
    assert COLOURS["ground"] == "#ffffff"
    assert light["ground"] == "rgb(255, 255, 255)"
    assert sum(map(int, re.findall(r"\d+", dark["ground"]))) < 150


def test_the_page_as_written_is_drawn_under_its_own_policy(tmp_path: Path, text: str) -> None:
    file, picture = tmp_path / "page.html", tmp_path / "page.png"
    file.write_text(text, encoding="utf-8")
    browse(tmp_path, f"--screenshot={picture}", file.as_uri())
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    assert (width, height) == (WIDTH, HEIGHT)
    assert picture.stat().st_size > 20_000  # a blank one has about 4,000 bytes
