from typing import Any

import pytest

from tests.attention.flow.making import examine, score
from tilewright.attention import cache, indexer
from tilewright.attention.abs import ContextBase
from tilewright.attention.utils import Mode, Schedule
from tilewright.errors import OperandError

GEOMETRY_FIELDS = (
    "group_size num_kv_heads num_qo_heads head_dim page_size block_size num_blocks_per_page"
    " workload_chunk_size num_pages_per_workload max_bs max_num_pages max_num_pages_per_request"
    " max_num_blocks max_num_blocks_per_request max_num_workloads num_sms topk_val max_topk_val"
    " topk_ratio block_reserved_bos block_reserved_eos sparse_attention_name impl_backend"
    " use_tensor_core vortex_attention_backend query_arg_names compilation_cache_dir metadata"
    " name mode vortex_dtype created"
)


def test_the_lists_of_a_context_describe_the_trace() -> None:
    seen: list[ContextBase] = []

    def forward(q: Any, o: Any, cache_: Any, ctx: Any) -> None:
        cache_["running"] = score(q, cache_)
        o.select(score(q, cache_).topk())
        seen.append(ctx)
        names = ctx.tensor_id_to_tensor_name_map
        assert (names[0], names[1], names[2]) == ("q", "o", "k")
        assert len(ctx.op_list) == len(ctx.op_to_input_tensor_list)
        assert ctx.output_tensor_to_op_list[0] == -1
        last = ctx.op_to_output_tensor_list[-1][0]
        assert ctx.output_tensor_to_op_list[last] == len(ctx.op_list) - 1
        (saved,) = ctx.side_effect_op_ids
        assert ctx.op_to_output_tensor_list[saved] == [ctx.trace.tensor_names["running"]]
        assert ctx.tensor_list[last].tensor_id == last

    examine(forward, fields={"centroids": (1, 16), "running": (1, 1)})
    assert seen[0].mode is Mode.profile
    assert seen[0].created


def test_contexts_have_the_fields_that_tools_read() -> None:
    context = indexer.get_ctx()
    assert all(hasattr(context, name) for name in GEOMETRY_FIELDS.split())
    other = cache.get_ctx()
    wanted = "head_num head_dim max_new_tokens_per_batch total_num_pages total_num_blocks"
    assert all(hasattr(other, name) for name in wanted.split())
    assert other is cache.ctx


def test_a_flow_that_reads_what_only_a_run_knows_is_refused_with_its_line() -> None:
    def forward(q: Any, o: Any, cache_: Any, ctx: Any) -> None:
        o.select((score(q, cache_) * float(ctx.topk_val)).topk())

    with pytest.raises(OperandError, match=r"test_context\.py:\d+, ctx\.topk_val: found a read"):
        examine(forward, fields={"centroids": (1, 16)})


def test_ops_that_vortex_gives_a_kernel_of_their_own_say_so() -> None:
    alone = [indexer.topK(), indexer.Softmax(), indexer.Mean(dim=0), indexer.Union()]
    fused = [indexer.GeMM(), indexer.Mean(dim=1), indexer.Relu(), indexer.Load(), indexer.Save()]
    assert {op.schedule for op in alone} == {Schedule.S}
    assert {op.schedule for op in fused} == {Schedule.W}
