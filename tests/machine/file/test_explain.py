"""Keys without effect are reported, wherever they were written."""

import pytest

from tilewright.machine.file.document import MachineDocument, document_of_text, override_document
from tilewright.machine.file.explain import _SWITCHES, unused_keys
from tilewright.machine.file.schema import is_path
from tilewright.machine.parse import spec_of


def warnings(text: str, *overrides: str) -> tuple[str, ...]:
    document: MachineDocument = override_document(document_of_text(text, "m.yaml"), overrides)
    return unused_keys(document, spec_of(document))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "sip: {count: 1}\nfabric:\n  links: 2\n  kind: ring",
            [(3, "fabric.links", "there is one SIP"), (4, "fabric.kind", "there is one SIP")],
        ),
        (
            "extends: crossbar-chip\ncube: {noc: {bytes_per_us: 5, attach_bytes_per_us: 5}}",
            [(2, "cube.noc.bytes_per_us", "cube.noc is a crossbar and cube.ucie is null")],
        ),
        (
            "fabric: {kind: ring, switch_ps: 5}",
            [(1, "fabric.switch_ps", "fabric.kind is not switch")],
        ),
        (
            "cube: {hbm: {model: simple, refresh: {kind: none}, simple_latency_ps: 1 ns}}",
            [(1, "cube.hbm.refresh.kind", "cube.hbm.model is simple")],
        ),
        (
            "cube: {hbm: {simple_latency_ps: 1 ns}}",
            [(1, "cube.hbm.simple_latency_ps", "cube.hbm.model is not simple")],
        ),
        (
            "cube: {hbm: {refresh: {kind: per_bank, all_bank_ps: 1 ns, per_bank_ps: 1 ns}}}",
            [(1, "cube.hbm.refresh.all_bank_ps", "cube.hbm.refresh.kind is not all_bank")],
        ),
        (
            "cube: {hbm: {refresh: {per_bank_ps: 1 ns}}}",
            [(1, "cube.hbm.refresh.per_bank_ps", "cube.hbm.refresh.kind is not per_bank")],
        ),
        (
            "cube: {hbm: {refresh: {kind: none, interval_ps: 1 ns}}}",
            [(1, "cube.hbm.refresh.interval_ps", "cube.hbm.refresh.kind is none")],
        ),
        (
            "cube: {hbm: {refresh: {kind: none, phase_ps: 1 ns}}}",
            [(1, "cube.hbm.refresh.phase_ps", "cube.hbm.refresh.kind is none")],
        ),
        ("fabric: {switch_ps: 5}\npe: {gemm: {depth: 4}}", []),
        ("name: x", []),
    ],
)
def test_a_key_that_another_key_switches_off_is_reported(
    text: str, expected: list[tuple[int, str, str]]
) -> None:
    assert list(warnings(text)) == [
        f"m.yaml line {line}: {key}: has no effect, since {reason}"
        for line, key, reason in expected
    ]


def test_an_override_without_effect_is_reported_as_one() -> None:
    expected = ("--set fabric.switch_ps: has no effect, since fabric.kind is not switch",)
    assert warnings("fabric: {kind: ring}", "fabric.switch_ps=4") == expected


def test_the_rules_name_keys_that_the_schema_has() -> None:
    assert all(
        is_path(path) for (key, *_), paths in _SWITCHES.items() for path in (*paths.split(), key)
    )
