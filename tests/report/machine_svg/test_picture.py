"""The picture of a machine: what is in it, that it can be read, and that it does not change."""

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.machine.shapes import machines, open_mesh, single_die
from tilewright.machine.build import build_machine
from tilewright.machine.parse import parse_machine
from tilewright.machine.presets import list_presets
from tilewright.machine.spec import CrossbarSpec, MachineSpec, MeshSpec, RingSpec
from tilewright.report.machine_svg.picture import draw_machine
from tilewright.report.svg import text_width

SVG = "{http://www.w3.org/2000/svg}"
STORED = Path(__file__).parents[3] / "docs" / "images" / "ahbm.svg"


@dataclass(frozen=True)
class Written:
    """A text and the box that its letters take."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Written") -> bool:
        beside = self.right <= other.left or other.right <= self.left
        return not (beside or self.bottom <= other.top or other.bottom <= self.top)


def picture(spec: MachineSpec) -> ElementTree.Element:
    return ElementTree.fromstring(draw_machine(build_machine(spec)))


def number(element: ElementTree.Element, name: str) -> float:
    return float(element.get(name, "nan"))


def written(root: ElementTree.Element) -> list[Written]:
    found = []
    for element in root.iter(f"{SVG}text"):
        text, size = element.text or "", number(element, "font-size")
        width = text_width(text, size=size, bold=element.get("font-weight") == "bold")
        before = {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor", "")]
        left, base = number(element, "x") - before * width, number(element, "y")
        found.append(Written(text, left, base - 0.8 * size, left + width, base + 0.1 * size))
    return found


def tips(root: ElementTree.Element) -> Counter[str]:
    return Counter(title.text or "" for title in root.iter(f"{SVG}title"))


def check_legible(root: ElementTree.Element) -> None:
    width, height = (float(word) for word in root.get("viewBox", "").split()[2:])
    for rect in root.iter(f"{SVG}rect"):
        assert number(rect, "width") >= 0
        assert number(rect, "height") >= 0
    texts = written(root)
    for one in texts:
        assert 0 <= one.left <= one.right <= width, one
        assert 0 <= one.top <= one.bottom <= height, one
    for one, other in combinations(texts, 2):
        assert not one.meets(other), (one, other)


def check_complete(root: ElementTree.Element, spec: MachineSpec) -> None:
    found = tips(root)
    for pe in range(spec.cube.pes):
        assert found[f"pe{pe}"] == found[f"hbm_ctrl.pe{pe}"] == 1
    assert found["m_cpu"] == found["sram"] == 1
    connections = spec.cube.ucie.connections if spec.cube.ucie else 0
    for side in "NESW":
        names = [f"ucie-{side}.conn{index}" for index in range(connections)]
        assert all(found[name] == 1 for name in names)
    cubes = [f"sip0.cube{cube}" for cube in range(spec.sip.num_cubes)]
    assert all(found[cube] in (1, 2) for cube in cubes)  # small SIPs show no cubes of their own
    assert all(found[f"sip{sip}"] == 1 for sip in range(spec.sip.count))


@pytest.mark.parametrize("preset", list_presets())
def test_every_preset_is_drawn_whole_and_legible(preset: str) -> None:
    spec = parse_machine(preset)
    root = picture(spec)
    check_complete(root, spec)
    check_legible(root)


@settings(max_examples=40)
@given(machines(most_sips=5, most_cubes=4, most_pes=12))
def test_any_small_machine_is_drawn_whole_and_legible(spec: MachineSpec) -> None:
    root = picture(spec)
    check_complete(root, spec)
    check_legible(root)


@pytest.mark.parametrize(
    "spec",
    [
        open_mesh(9),
        single_die(4, MeshSpec(rows=60, columns=40, hole_rows=2, hole_columns=20)),
        single_die(5, RingSpec(routers=40)),
        single_die(3, RingSpec(routers=3, pitch_um=0)),
        single_die(1, RingSpec(routers=1)),
        single_die(100, CrossbarSpec()),
    ],
)
def test_dies_of_odd_shapes_are_drawn_whole_and_legible(spec: MachineSpec) -> None:
    root = picture(spec)
    check_complete(root, spec)
    check_legible(root)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["sip.count=16"], "8 of 16 SIPs are drawn"),
        (["sip.columns=16", "sip.rows=1"], "8 of 16 x 1 cubes are drawn"),
        (["cube.noc.rows=90"], "too many to draw"),
        (["cube.noc.kind=ring", "cube.noc.routers=2000"], "too many to draw"),
        (["cube.noc.kind=crossbar", "cube.ucie.connections=200"], "too many to draw"),
    ],
)
def test_what_is_left_out_is_said(overrides: list[str], words: str) -> None:
    root = picture(parse_machine("ahbm", ["sip.columns=1", "sip.rows=1", *overrides]))
    assert words in [one.text for one in written(root)]
    check_legible(root)


@settings(max_examples=10)
@given(name=st.text(min_size=1, max_size=80), description=st.text(max_size=400))
@example(name="W" * 80, description="a long description " * 20)
def test_no_name_breaks_the_picture(name: str, description: str) -> None:
    names = {"name": name, "description": description}
    check_legible(picture(parse_machine("ahbm-small").model_copy(update=names)))


def test_routers_stand_where_the_layout_puts_them() -> None:
    machine = build_machine(parse_machine("ahbm"))
    root = ElementTree.fromstring(draw_machine(machine))
    middles = {
        rect.findtext(f"{SVG}title"): (
            number(rect, "x") + number(rect, "width") / 2,
            number(rect, "y") + number(rect, "height") / 2,
        )
        for rect in root.iter(f"{SVG}rect")
    }
    places = {
        f"r{p.name.row}c{p.name.column}": p.position_um
        for p in machine.routes.topology.die.layout.routers
    }
    assert len(places) == 32
    (x0, y0), (x1, _) = middles["r0c0"], middles["r0c5"]
    scale = (x1 - x0) / (places["r0c5"][0] - places["r0c0"][0])
    for name, (x, y) in places.items():
        expected = x0 + (x - places["r0c0"][0]) * scale, y0 + (y - places["r0c0"][1]) * scale
        assert middles[name] == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ([], {"57.614 GB/s", "4 x 128 GB/s", "2 SIPs on a switch", "48 GiB", "2.048 TB/s"}),
        (["fabric.bytes_per_us=50 GB/s"], {"4 x 50 GB/s"}),
        (["cube.hbm.capacity_bytes=24 GiB"], {"24 GiB", "HBM 24 GiB", "3 GiB"}),
        (["pe.gemm.kind=systolic"], {"16 x 16 systolic", "0.512", "TFLOPS f16"}),
        (["pe.tcm.read_bytes_per_us=1 TB/s"], {"read", "1 TB/s", "write", "512 GB/s"}),
        (["sip.count=3", "fabric.kind=ring"], {"3 SIPs in a ring", "2 x 128 GB/s"}),
    ],
)
def test_the_figures_are_those_of_the_machine(overrides: list[str], words: set[str]) -> None:
    texts = {one.text for one in written(picture(parse_machine("ahbm", overrides)))}
    assert words <= texts


def test_the_stored_picture_is_the_one_that_the_command_draws() -> None:
    drawn = draw_machine(build_machine(parse_machine("ahbm")))
    stored = STORED.read_text(encoding="utf-8")
    remedy = "run: tilewright machine show ahbm --svg docs/images/ahbm.svg, and look at it"
    assert stored == drawn, remedy
