import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.attention.graph import FORMAT, DType, FlowKind, Geometry, Leading, ValueType, walk
from tilewright.attention.graph.graph import Node
from tilewright.attention.ops import binary
from tilewright.attention.ops.leaf import Constant
from tilewright.errors import SpecError
from tilewright.units import DTYPE_BITS

NUMBER = ValueType(FORMAT.BATCHED, Leading.ONE, (1, 1), DType.FLOAT32)


@pytest.mark.parametrize(
    ("dtype", "computed"),
    [
        (DType.BFLOAT16, DType.FLOAT32),
        (DType.FLOAT8_E4M3, DType.FLOAT32),
        (DType.INT4, DType.INT32),
        (DType.BOOL, DType.BOOL),
    ],
)
def test_arithmetic_on_a_stored_type_yields_a_computed_one(dtype: DType, computed: DType) -> None:
    assert dtype.computed is computed
    assert computed.computed is computed


def test_stored_bytes_of_an_entry_are_rounded_up() -> None:
    assert ValueType(FORMAT.PAGED, Leading.PAGES, (3, 3), DType.INT4).num_bytes == 5
    assert ValueType(FORMAT.PAGED, Leading.PAGES, (16, 128), DType.BFLOAT16).num_bytes == 4096


def test_a_latent_has_its_value_in_front_and_its_positions_behind() -> None:
    latent = Geometry.mla(page_size=16, kv_lora_rank=512, qk_rope_head_dim=64, query_heads=20)
    assert (latent.key_dim, latent.value_dim, latent.rope_dim) == (576, 512, 64)
    assert latent.reserved_fields == {"latent": (16, 576)}
    assert latent.kind is FlowKind.MLA


@pytest.mark.parametrize("name", ["page_size", "head_dim", "query_heads"])
@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_sizes_of_a_geometry_are_whole_numbers(name: str, size: int) -> None:
    sizes: dict[str, Any] = {"page_size": 8, "head_dim": 16, "query_heads": 4} | {name: size}
    with pytest.raises(SpecError, match="expected at least 1"):
        Geometry.gqa(**sizes)


@given(st.data())
def test_a_walk_visits_inputs_before_users_and_each_node_once(data: st.DataObject) -> None:
    nodes = [Node(Constant(float(index)), (), NUMBER) for index in range(3)]
    for _ in range(data.draw(st.integers(1, 15))):
        pair = tuple(data.draw(st.sampled_from(nodes)) for _ in range(2))
        nodes.append(Node(binary.Add(), pair, NUMBER))
    seen: list[Node] = []
    for node in walk(nodes[::-1]):
        assert all(item in seen for item in node.inputs)
        seen.append(node)
    assert len(seen) == len(set(seen)) == len(nodes)


@pytest.mark.parametrize("dtype", DType)
def test_every_element_type_has_its_bits_in_the_table_of_units(dtype: DType) -> None:
    number = re.search(r"\d+", dtype)
    assert dtype.bits == DTYPE_BITS[dtype.short_name] == int(number[0] if number else 8)
