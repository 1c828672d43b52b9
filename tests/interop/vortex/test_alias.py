"""``vortex_torch`` as names of ours: every path, once, undoable, never over a real one."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import tilewright.attention.indexer
from tilewright.attention.graph import DType
from tilewright.errors import FlowLoadError, MissingExtraError, RegistryError
from tilewright.interop.vortex import (
    install_vortex_alias,
    remove_vortex_alias,
    vortex_names,
)
from tilewright.interop.vortex.alias import build_torch_names

NAMES = {
    "vortex_torch": (
        "indexer cache flow abs Parameter is_hopper_or_newer is_hopper warmup_jit"
        " clear_stale_jit_locks __version__ integration"
    ),
    "vortex_torch.abs": (
        "ContextBase vOp vTensor as_vtensor FORMAT Parameter context_base op tensor parameter"
    ),
    "vortex_torch.flow": (
        "vFlow vFlowMLA register build_vflow verify_flow_compilable VerifyReport Config Failure"
        " DEFAULT_G_VALUES DEFAULT_D_VALUES DEFAULT_BLOCK_SIZES DEFAULT_PAGE_BLOCK_RATIOS"
        " DEFAULT_PAGES_PER_WORKLOAD algorithms algorithms_mla algorithms_learned_mla"
        " flow flow_mla registry loader verify"
    ),
    "vortex_torch.flow.registry": "register get has list_keys RegistryError _REGISTRY",
    "vortex_torch.flow.loader": "build_vflow FlowLoadError FlowInitError",
    "vortex_torch.indexer": (
        "GeMM GeMV FactorScore topK approxTopK TopK Union Max Mean Min L2Norm Sum Softmax Normalize"
        " Conv1d Transpose Maximum Minimum Multiply Add WhereEqual WhereNotEqual WhereGreater"
        " WhereGreaterEqual WhereLess WhereLessEqual Relu Sigmoid Silu Add_Mul Abs Log Exp Save"
        " Load MaskSlice Kron Reshape Parameter Context MetaData get_ctx utils_sglang compiler"
        " matmul reduce scan transpose elementwise elementwise_binary save_load mask kron reshape"
        " output_func select factor_score context metadata"
    ),
    "vortex_torch.cache": (
        "Mean Max Min L2Norm MeanInterleave MaxInterleave MinInterleave L2NormInterleave GeMM Relu"
        " Silu Sigmoid Abs Add_Mul Log Exp Maximum Minimum Multiply Add WhereEqual WhereNotEqual"
        " WhereGreater WhereGreaterEqual WhereLess WhereLessEqual Fill MaskSlice Reshape"
        " LearnedDescriptor Context ctx get_ctx compiler reduce reduce_interleave matmul"
        " elementwise elementwise_binary fill mask reshape learned_descriptor context"
    ),
    "vortex_torch.indexer.matmul": "GeMM GeMV",
    "vortex_torch.indexer.reduce": "Max Mean Min L2Norm Sum",
    "vortex_torch.indexer.scan": "Softmax Normalize Conv1d",
    "vortex_torch.indexer.elementwise": "Relu Sigmoid Silu Add_Mul Abs Log Exp",
    "vortex_torch.indexer.elementwise_binary": (
        "Maximum Minimum Multiply Add WhereEqual WhereNotEqual WhereGreater WhereGreaterEqual"
        " WhereLess WhereLessEqual"
    ),
    "vortex_torch.indexer.save_load": "Save Load",
    "vortex_torch.indexer.output_func": "topK approxTopK",
    "vortex_torch.indexer.select": "TopK Union",
    "vortex_torch.indexer.context": "Context get_ctx",
    "vortex_torch.cache.reduce": "Mean Max Min L2Norm",
    "vortex_torch.cache.reduce_interleave": (
        "MeanInterleave MaxInterleave MinInterleave L2NormInterleave"
    ),
    "vortex_torch.cache.context": "Context ctx get_ctx",
    "vortex_torch.utils": (
        "Schedule Mode ReduceType ElementwiseOpType ElementwiseBinaryOpType QuantizationType"
        " resolve_dtype DTYPE_STR_TO_TORCH is_hopper"
    ),
    "vortex_torch.engine.sgl.config": "VortexConfig normalize_vortex_config",
}


@pytest.fixture
def alias() -> Iterator[None]:
    install_vortex_alias()
    yield
    remove_vortex_alias()


@pytest.mark.parametrize("path", NAMES)
@pytest.mark.usefixtures("alias")
def test_every_documented_name_resolves(path: str) -> None:
    module = importlib.import_module(path)
    missing = [name for name in NAMES[path].split() if not hasattr(module, name)]
    assert missing == []


@pytest.mark.usefixtures("alias")
def test_every_submodule_can_be_imported_by_its_path() -> None:
    for path in ("abs", "indexer", "cache", "flow"):
        for name in NAMES[f"vortex_torch.{path}"].split():
            found = getattr(importlib.import_module(f"vortex_torch.{path}"), name)
            if isinstance(found, ModuleType):
                assert importlib.import_module(f"vortex_torch.{path}.{name}") is found


@pytest.mark.usefixtures("alias")
def test_a_class_is_the_same_object_under_both_names() -> None:
    deep = importlib.import_module("vortex_torch.indexer.matmul")
    shallow = importlib.import_module("vortex_torch.indexer")
    assert deep.GeMM is shallow.GeMM is tilewright.attention.indexer.GeMM


@pytest.mark.usefixtures("alias")
def test_installing_twice_changes_nothing() -> None:
    flow, finders = importlib.import_module("vortex_torch.flow"), list(sys.meta_path)
    install_vortex_alias()
    assert importlib.import_module("vortex_torch.flow") is flow
    assert sys.meta_path == finders


def test_removing_undoes_installing_and_may_be_repeated() -> None:
    install_vortex_alias()
    importlib.import_module("vortex_torch.flow")
    remove_vortex_alias()
    remove_vortex_alias()
    assert not any(name.startswith("vortex_torch") for name in sys.modules)


def test_a_real_vortex_is_neither_replaced_nor_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ModuleType("vortex_torch")
    monkeypatch.setitem(sys.modules, "vortex_torch", real)
    with pytest.raises(RegistryError, match="already imported"):
        install_vortex_alias()
    remove_vortex_alias()
    assert sys.modules["vortex_torch"] is real


def test_the_names_of_a_file_end_with_it_unless_they_were_installed_before() -> None:
    with vortex_names():
        flow = importlib.import_module("vortex_torch.flow")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("vortex_torch.flow")
    install_vortex_alias()
    with vortex_names():
        pass
    assert importlib.import_module("vortex_torch.flow") is flow
    remove_vortex_alias()


@pytest.mark.usefixtures("alias")
def test_a_code_generator_can_be_imported_and_says_why_it_has_nothing() -> None:
    compiler = importlib.import_module("vortex_torch.indexer.compiler")
    with pytest.raises(FlowLoadError, match="flows need no code generator"):
        _ = compiler.compile


def test_names_of_torch_do_for_annotations_and_element_types() -> None:
    torch = build_torch_names()
    assert torch.bfloat16 is DType.BFLOAT16
    assert torch.float8_e5m2 is DType.FLOAT8_E5M2
    assert isinstance(torch.Tensor, type)


@pytest.mark.parametrize("use", ["matmul", "nn", "zeros"])
def test_what_needs_the_real_torch_says_which_extra_brings_it(use: str) -> None:
    with pytest.raises(MissingExtraError, match=rf"needs torch\.{use}: found no library 'torch'"):
        getattr(build_torch_names(), use)


def test_the_stand_in_gives_way_to_what_was_there_before() -> None:
    before = sys.modules.get("torch")
    with vortex_names(stand_in_for_torch=True):
        assert sys.modules["torch"].bfloat16 is DType.BFLOAT16
    assert sys.modules.get("torch") is before


LIGHT = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoTorch())
from tilewright.interop.vortex import load_flows
from tilewright.attention.verify import check_flows
import tilewright.interop.vortex.alias as alias
alias.torch_is_installed = lambda: False
rows = check_flows(load_flows(sys.argv[1]))
print([(row.name, row.ok) for row in rows], "torch" in sys.modules)
"""


def test_a_flow_file_that_imports_torch_loads_without_torch(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file = tmp_path_factory.mktemp("light") / "flow.py"
    file.write_text(
        "import torch\n"
        "from vortex_torch.flow import register, vFlow\n"
        "from vortex_torch.indexer import Conv1d, GeMM, Mean, topK\n"
        "from vortex_torch.cache import Mean as CMean\n"
        "@register('light')\n"
        "class Light(vFlow):\n"
        "    def __init__(self):\n"
        "        self.conv = Conv1d([[[0.5]]], dtype=torch.bfloat16)\n"
        "    def create_cache(self, block_size, head_dim):\n"
        "        return {'c': (1, head_dim)}\n"
        "    def forward_cache(self, cache, loc: torch.Tensor, ctx):\n"
        "        CMean()(cache['k'], cache['c'], loc=loc, ctx=ctx)\n"
        "    def forward_indexer(self, q: torch.Tensor, o, cache, ctx):\n"
        "        s = GeMM()(Mean()(q, ctx=ctx), cache['c'], ctx=ctx)\n"
        "        topK()(self.conv(s, ctx=ctx), o, ctx=ctx)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, str(file)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[('light', True)] False", done.stderr


def test_blocks_with_the_names_of_torch_nest_where_torch_is_not_installed() -> None:
    before = sys.modules.get("torch")
    with vortex_names(stand_in_for_torch=True):
        with vortex_names():
            assert sys.modules["torch"].bfloat16 is DType.BFLOAT16
        assert sys.modules["torch"].bfloat16 is DType.BFLOAT16
    assert sys.modules.get("torch") is before
