"""What every field of a VortexConfig does: it works, is listed as without effect, or is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilewright.attention import VortexConfig, normalize_vortex_config
from tilewright.attention.backends.reference import Session, StepOutput, session_of_config
from tilewright.attention.flow.config import REFUSED, WITHOUT_EFFECT
from tilewright.attention.verify import check_engine_config
from tilewright.errors import SpecError, TilewrightError
from tilewright.interop import vortex
from tilewright.models import GqaShape, find_shape
from tilewright.models.rope import RopeSpec

SHAPE = GqaShape(
    name="tiny", layers=2, hidden=8, query_heads=2, kv_heads=1, head_dim=4, ffn=8, vocab=8,
    context=64, norm_eps=1e-5, rope=RopeSpec(base=1e4, width=4),
)  # fmt: skip
BASE = {"module_name": "quest", "topk_val": 1, "block_size": 2}
MINE = """
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import GeMM, Mean, topK
from vortex_torch.cache import Mean as CMean

@register("mine")
class Mine(vFlow):
    def create_cache(self, block_size, head_dim):
        return {"c": (1, head_dim)}
    def forward_cache(self, cache, loc, ctx):
        CMean(dim=1)(cache["k"], cache["c"], loc=loc, ctx=ctx)
    def forward_indexer(self, q, o, cache, ctx):
        topK()(GeMM()(Mean(dim=1)(q, ctx=ctx), cache["c"], ctx=ctx), o, ctx=ctx)
"""


FILLED = """
from vortex_torch.flow import register, vFlow
from vortex_torch.indexer import GeMM, Max, Mean, Multiply, topK
from vortex_torch.cache import Fill, GeMM as CGeMM, L2Norm, Mean as CMean

@register("filled")
class Filled(vFlow):
    def create_cache(self, block_size, head_dim):
        return {"c": (1, head_dim), "e": (3, head_dim), "norm": (3, 1), "squares": (3, 3)}
    def forward_cache(self, cache, loc, ctx):
        CMean(dim=1)(cache["k"], cache["c"], loc=loc, ctx=ctx)
        Fill(2.0)(cache["e"], loc=loc, ctx=ctx)
        L2Norm(dim=2)(cache["e"], cache["norm"], loc=loc, ctx=ctx)
        CGeMM()(cache["e"], cache["e"], cache["squares"], loc=loc, ctx=ctx)
    def forward_indexer(self, q, o, cache, ctx):
        score = GeMM()(Mean(dim=1)(q, ctx=ctx), cache["c"], ctx=ctx)
        score = Multiply()(score, Max(dim=1)(cache["norm"], ctx=ctx), ctx=ctx)
        largest = Max(dim=2)(Max(dim=1)(cache["squares"], ctx=ctx), ctx=ctx)
        topK()(Multiply()(score, largest, ctx=ctx), o, ctx=ctx)
"""


def config_of(**values: object) -> VortexConfig:
    config = normalize_vortex_config({**BASE, **values})
    assert config is not None
    return config


def decoded(session: Session, steps: int = 3, layer: int = 1) -> list[StepOutput]:
    """Some tokens behind a prompt of 40, the same for every session."""
    generator = np.random.default_rng(2)
    session.admit("a", range(40))
    found = []
    for index in range(steps + 1):
        count = 1 if index else 40
        tokens = range(40) if not index else [100 + index]
        step = session.begin({"a": tokens}, prompt=not index)
        keys = generator.normal(size=(3, SHAPE.layers, count, 1, 4)).astype(np.float32)
        queries = generator.normal(size=(SHAPE.layers, 1, 1, 2, 4))
        for each in range(SHAPE.layers):
            step.write(each, "a", keys[0, each], keys[1, each])
            if index:
                output = step.attend(each, {"a": queries[each]})["a"]
                found += [output] if each == layer else []
        step.finish()
    return found


def pages_of(**values: object) -> list[list[int]]:
    outputs = decoded(session_of_config(config_of(**values), SHAPE))
    return [output.pages(0, 0).tolist() for output in outputs]


COUNTS = {
    "topk_val": (4, [6, 6, 6]),
    "topk_ratio": (0.5, [10, 10, 11]),
    "layers_skip": ([1], [21, 21, 22]),
    "block_reserved_bos": (3, [5, 5, 5]),
    "block_reserved_eos": (4, [6, 6, 6]),
    "schedule_policy": ("n_blocks // 3", [7, 7, 7]),
    "min_ctx": (42, [21, 3, 3]),
    "max_topk_val": (2, [4, 4, 4]),
    "block_size": (4, [3, 3, 3]),
    "page_size": (8, [3, 3, 3]),
}
"""Pages that three steps read with one field set; without it, three each."""


@pytest.mark.parametrize("name", COUNTS)
def test_a_field_of_the_budget_decides_how_many_pages_are_read(name: str) -> None:
    value, expected = COUNTS[name]
    more = {"topk_val": 9} if name == "max_topk_val" else {}
    assert [len(pages) for pages in pages_of(**more, **{name: value})] == expected
    assert [len(pages) for pages in pages_of()] == [3, 3, 3]


def test_state_of_rows_that_fit_their_budget_advances_by_the_named_rule_alone() -> None:
    written = {}
    for rule in ("vortex", "every_block"):
        flow = {"module_name": "running_avg_block_sparse", "topk_val": 40}
        session = session_of_config(config_of(**flow, state_advance=rule), SHAPE)
        decoded(session)
        written[rule] = session.counters.num_bytes.state_written
    assert written["vortex"] == 0
    assert written["every_block"] > 0


def test_an_update_interval_keeps_a_selection_for_so_many_steps() -> None:
    each, kept = pages_of(topk_val=3), pages_of(topk_val=3, update_interval=3)
    first = set(kept[0]) - {20}
    assert all(first <= set(pages) for pages in kept)
    assert kept[0] == each[0]
    assert kept != each


def test_pages_of_the_pool_hold_several_blocks() -> None:
    session = session_of_config(config_of(page_size=8, max_seq_lens=50), SHAPE, num_requests=2)
    decoded(session)
    assert session.pager.spec.blocks_per_page == 4
    assert session.pager.spec.num_pages == 2 * 7


def test_a_sequence_longer_than_max_seq_lens_finds_no_room() -> None:
    with pytest.raises(TilewrightError, match="pages"):
        decoded(session_of_config(config_of(max_seq_lens=40), SHAPE))


def test_the_dtype_is_that_of_summaries() -> None:
    session = session_of_config(config_of(dtype="float8_e5m2"), SHAPE)
    assert session.store.dtypes["max"].value == "float8_e5m2"
    assert session.store.dtypes["k"].value == "bfloat16"
    with pytest.raises(SpecError, match=r"geometry\.field_dtype: found int8"):
        session_of_config(config_of(dtype="int8"), SHAPE)


def test_a_flow_file_is_run_under_its_name(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    config = config_of(module_path=str(file), module_name="mine")
    assert vortex.session_of_config(config, SHAPE).graph.name == "mine"


def test_a_filled_field_reads_back_in_its_own_shape(tmp_path: Path) -> None:
    file = tmp_path / "filled.py"
    file.write_text(FILLED)
    config = config_of(module_path=str(file), module_name="filled")
    session = vortex.session_of_config(config, SHAPE)
    decoded(session)
    complete = slice(21)  # of 43 tokens, two a page
    assert np.all(session.field("a", 1, "norm")[:, complete] == np.sqrt(4 * 2.0**2))
    assert np.all(session.field("a", 1, "squares")[:, complete] == 4 * 2.0**2)


@pytest.mark.parametrize("layers", [[2], [0, 7]])
def test_a_skipped_layer_that_the_model_does_not_have_is_refused(layers: list[int]) -> None:
    found = rf"vortex config.layers_skip: found layers \[{layers[-1]}\], expected layers below 2"
    with pytest.raises(SpecError, match=found):
        session_of_config(config_of(layers_skip=layers), SHAPE)


def test_a_flow_of_another_kind_than_the_model_is_refused() -> None:
    with pytest.raises(SpecError, match="a flow of kind mla, as deepseek-v3 has"):
        session_of_config(config_of(), find_shape("deepseek-v3"))
    session = session_of_config(
        config_of(module_name="quest_mla", max_seq_lens=4),
        replace(find_shape("deepseek-v3"), layers=1),
    )
    assert session.graph.geometry.query_heads == 128


GIVEN = {
    "workload_chunk_size": 64,
    "compilation_cache_dir": "kernels",
    "attention_backend": "trtllm",
    "impl_backend": "cuda",
    "use_tensor_core": True,
}


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_a_field_without_effect_is_named_and_changes_nothing(name: str) -> None:
    config = config_of(**{name: GIVEN[name]})
    assert config.without_effect == (name,)
    details = {check.name: check.detail for check in check_engine_config(config)}
    assert details["without effect"] == name
    assert pages_of(**{name: GIVEN[name]}) == pages_of()


OTHERS = {
    "host_kv_gb": 1.0,
    "host_kv_pool_blocks": 8,
    "host_kv_policy": "fifo",
    "frozen_model_name": "x",
    "frozen_temperature": 0.5,
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_field_that_nothing_does_is_refused_with_what_to_use(name: str) -> None:
    expected, fix = REFUSED[name]
    for make in (config_of, VortexConfig):
        with pytest.raises(SpecError) as caught:
            make(**{name: OTHERS[name]})
        assert caught.value.args == (f"vortex config.{name}", repr(OTHERS[name]), expected, fix)
    assert config_of(**{name: VortexConfig.model_fields[name].default}).without_effect == ()


def test_every_field_is_in_one_of_these_tests_and_in_the_guide() -> None:
    working = {*COUNTS, "module_path", "module_name", "max_seq_lens", "dtype", "update_interval"}
    working.add("state_advance")
    assert working | {*WITHOUT_EFFECT, *REFUSED} == {*VortexConfig.model_fields}
    guide = Path(__file__).parents[4] / "docs" / "guides" / "from-vortex.md"
    rows = [line for line in guide.read_text().splitlines() if line.startswith("| `")]
    for name in VortexConfig.model_fields:
        (row,) = [line for line in rows if f"`{name}`" in line.split("|")[1]]
        verdict = row.split("|")[2].strip()
        expected = "refused" if name in REFUSED else "works"
        assert verdict == ("without effect" if name in WITHOUT_EFFECT else expected), name
