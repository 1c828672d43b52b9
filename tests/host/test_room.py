from tilewright.host import DPPolicy, RuntimeContext


def test_a_context_holds_all_hbm_of_the_machine() -> None:
    with RuntimeContext("ahbm") as torch:
        grid, hbm = torch.machine.grid, torch.machine.spec.cube.hbm
        num_bytes = grid.num_cubes * hbm.capacity_bytes
        policy = DPPolicy(sip="row_wise", cube="row_wise", pe="row_wise")
        whole = torch.empty((grid.num_pes, num_bytes // grid.num_pes), dtype="int8", dp=policy)
        assert num_bytes == 1536 * 2**30
        assert whole.nbytes == num_bytes
