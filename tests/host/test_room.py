from tests.soak.observe import resident_bytes
from tilewright.host import DPPolicy, RuntimeContext


def test_a_context_holds_all_hbm_of_the_machine() -> None:
    with RuntimeContext("ahbm") as torch:
        grid, hbm = torch.machine.grid, torch.machine.spec.cube.hbm
        num_bytes = grid.num_cubes * hbm.capacity_bytes
        policy = DPPolicy(sip="row_wise", cube="row_wise", pe="row_wise")
        whole = torch.empty((grid.num_pes, num_bytes // grid.num_pes), dtype="int8", dp=policy)
        assert num_bytes == 1536 * 2**30
        assert whole.nbytes == num_bytes


def test_a_fill_of_all_hbm_takes_no_memory_of_the_host_and_reads_as_it_was_written() -> None:
    with RuntimeContext("ahbm") as torch:
        grid, hbm = torch.machine.grid, torch.machine.spec.cube.hbm
        row_bytes = grid.num_cubes * hbm.capacity_bytes // grid.num_pes
        policy = DPPolicy(sip="row_wise", cube="row_wise", pe="row_wise")
        before = resident_bytes()
        whole = torch.full((grid.num_pes, row_bytes // 2), 3, "i16", dp=policy, timed=False)
        assert whole[77, 10**9 : 10**9 + 3].tolist() == [3, 3, 3]
        whole[77, 10**9 + 1] = 5
        assert whole[77, 10**9 : 10**9 + 3].tolist() == [3, 5, 3]
        assert resident_bytes() - before < 256 * 2**20
