"""Closed forms beside machine code: what is equal, what is explained, what is a riddle."""

from analysis.access import Pattern, Tiling, access_counts
from analysis.comparison.agreement import comparisons, machine_accesses, unexplained
from analysis.devices import find_device
from analysis.problem import parse_shape
from analysis.records.counters import InstructionCounts
from analysis.records.metrics import FFMA, FMUL
from analysis.records.profile import MachineAccess
from analysis.theory import theory
from tests.records_by_hand import record as record_of
from tests.records_by_hand import simulated

NAIVE = Tiling(block_m=32, block_n=32)
TILED = Tiling(block_m=32, block_n=32, block_k=32, shared_load_a_width=4)
SQUARE = parse_shape("64")
RAGGED = parse_shape("33x40x64")


def machine(space, action, lanes, **more):
    """Accesses of 4 bytes by full warps: 4 sectors or 1 wavefront each, unless said otherwise."""
    warps = -(-lanes // 32)
    is_shared = space == "shared"
    values = {
        "space": space,
        "action": action,
        "instruction_bytes": 4,
        "executed": warps,
        "requests": warps,
        "lanes": lanes,
        "sectors": 0 if is_shared else 4 * warps,
        "wavefronts": warps if is_shared else 0,
        "conflict_free": warps if is_shared else 0,
        "ideal": warps,
    }
    return MachineAccess(**(values | more))


def patterns(counts):
    return tuple(
        Pattern(
            space=a.space,
            operation=a.operation,
            operand=a.operand,
            instruction_bytes=4 * a.elements // a.instructions,
            requests=-(-a.instructions // 32),
            cycles=1,
            **({"sectors": 4} if a.space == "global" else {"wavefronts": 1}),
        )
        for a in counts.accesses
    )


def agreeing(counts):
    return tuple(
        machine(
            a.space,
            a.operation,
            a.instructions,
            instruction_bytes=4 * a.elements // a.instructions,
        )
        for a in counts.accesses
    )


def compared(
    tiling,
    shape,
    *accesses,
    ffma=0,
    fmul=0,
):
    """The comparisons of a launch that did what it should but for what is given."""
    counts = access_counts(tiling, shape)
    record = record_of(
        shape,
        theory=theory(counts, patterns(counts), find_device("t4")),
        simulated=simulated(
            {FFMA: ffma or counts.multiply_adds or 0, FMUL: fmul},
            accesses=accesses or agreeing(counts),
        ),
    )
    found = comparisons(record)
    assert unexplained(record) == tuple(one for one in found if not one.is_explained)
    return {(one.subject, one.quantity): one for one in found}


def test_a_launch_that_does_what_it_should_is_equal_throughout():
    found = compared(TILED, SQUARE)
    assert all(one.is_equal and one.reason is None and one.is_explained for one in found.values())
    assert list(found) == [
        ("arithmetic", "multiply-adds"), ("arithmetic", "FLOP"),
        ("global loads", "elements"), ("global loads", "instructions"),
        ("global loads", "requests"), ("global loads", "sectors"),
        ("global stores", "elements"), ("global stores", "instructions"),
        ("global stores", "requests"), ("global stores", "sectors"),
        ("shared loads", "elements"), ("shared loads", "instructions"),
        ("shared loads", "warp instructions"), ("shared loads", "wavefronts"),
        ("shared stores", "elements"), ("shared stores", "instructions"),
        ("shared stores", "warp instructions"), ("shared stores", "wavefronts"),
    ]  # fmt: skip
    assert found["arithmetic", "multiply-adds"].closed_form == 64**3
    assert found["global loads", "elements"].closed_form == 2 * 64**3 // 32


def test_without_both_grades_there_is_nothing_to_compare():
    assert comparisons(record_of(SQUARE)) == ()


def test_alpha_is_one_multiplication_per_element_of_c():
    flop = compared(NAIVE, SQUARE, fmul=64 * 64)["arithmetic", "FLOP"]
    assert flop.simulated == 2 * 64**3 + 64**2
    assert (flop.reason, flop.is_explained) == ("alpha and beta, 1 per element of C", True)


def test_beta_is_a_multiply_add_more():
    found = compared(NAIVE, SQUARE, ffma=64**3 + 64**2, fmul=64**2)
    assert found["arithmetic", "multiply-adds"].reason == "beta · C is 1 per element of C"
    assert found["arithmetic", "FLOP"].reason == "alpha and beta, 3 per element of C"  # 2 + 1


def test_multiply_adds_that_are_no_multiple_of_c_are_a_riddle():
    found = compared(NAIVE, SQUARE, ffma=64**3 + 1)
    assert not found["arithmetic", "multiply-adds"].is_explained
    assert not found["arithmetic", "FLOP"].is_explained
    assert found["arithmetic", "FLOP"].reason.startswith("not explained: ")
    assert not compared(NAIVE, SQUARE, ffma=64**3 - 64**2)["arithmetic", "FLOP"].is_explained


def test_tiles_that_reach_beyond_the_matrices_multiply_zeros():
    flop = compared(TILED, RAGGED)["arithmetic", "FLOP"]
    assert flop.simulated == 2 * 64 * 64 * 64  # 2 x 2 blocks of 32 x 32
    assert flop.is_explained
    assert flop.reason == "multiply-adds on zeros outside the matrices, 210 % more"  # 4096 / 1320


def loads(*accesses):
    """Accesses of the naive rung, with other loads."""
    counts = access_counts(NAIVE, SQUARE)
    return (*accesses, *(a for a in agreeing(counts) if a.action != "load"))


def test_other_widths_change_instructions_but_not_elements():
    wide = machine("global", "load", 64**3 // 4, instruction_bytes=16)
    found = compared(NAIVE, SQUARE, *loads(machine("global", "load", 64**3), wide))
    assert found["global loads", "elements"].is_equal
    instructions = found["global loads", "instructions"]
    assert (instructions.closed_form, instructions.simulated) == (2 * 64**3, 64**3 + 64**3 // 4)
    assert instructions.is_explained
    assert instructions.reason == (
        "the compiler moves 50 % in 4 bytes, 50 % in 16 bytes per lane, the closed form says 4"
    )
    assert found["global loads", "requests"].is_explained


def test_elements_that_differ_are_a_riddle_and_so_is_what_follows_from_them():
    found = compared(NAIVE, SQUARE, *loads(machine("global", "load", 2 * 64**3 + 32)))
    for quantity in ("elements", "instructions", "requests", "sectors"):
        assert not found["global loads", quantity].is_explained
    assert found["global loads", "elements"].reason == "not explained"


def test_idle_lanes_are_a_riddle_where_no_tile_reaches_beyond_a_matrix():
    idle = machine("global", "load", 2 * 64**3, requests=2 * 64**3 // 32 + 100)
    found = compared(NAIVE, SQUARE, *loads(idle))["global loads", "requests"]
    assert not found.is_explained
    assert found.reason.startswith("not explained: guards leave 31.")


def test_shared_instructions_without_a_lane_are_explained_also_where_warps_are_full():
    counts = access_counts(TILED, SQUARE)
    stores = counts.instructions("shared", "store")
    twin = machine("shared", "store", stores, executed=stores // 32 + 50)
    others = tuple(a for a in agreeing(counts) if (a.space, a.action) != ("shared", "store"))
    found = compared(TILED, SQUARE, twin, *others)
    assert found["shared stores", "wavefronts"].is_equal
    instructions = found["shared stores", "warp instructions"]
    assert instructions.is_explained
    assert instructions.reason == "50 more are issued without an active lane"


def test_rows_off_a_sector_cost_sectors():
    shape = parse_shape("64x64x33")
    counts = access_counts(NAIVE, shape)
    loads = counts.instructions("global", "load")
    more = machine("global", "load", loads, sectors=5 * loads // 32)
    others = tuple(a for a in agreeing(counts) if a.action != "load")
    found = compared(NAIVE, shape, more, *others)
    assert found["global loads", "requests"].is_equal
    sectors = found["global loads", "sectors"]
    assert sectors.is_explained
    assert sectors.reason == (
        "rows of A of 33 floats do not begin at a 32-byte boundary, as the first warp's do"
    )


def test_local_memory_is_spilled_registers_and_anything_else_a_riddle():
    spilled = machine("local", "store", 64)
    atomic = machine("global", "atomic", 64)
    found = compared(NAIVE, SQUARE, *agreeing(access_counts(NAIVE, SQUARE)), spilled, atomic)
    assert found["local stores", "requests"].is_explained
    assert not found["global atomics", "requests"].is_explained
    assert found["global atomics", "requests"].closed_form == 0


def counted(opcode, **more):
    values = {
        "address": 0, "opcode": opcode, "text": opcode, "file": None, "line": None,
        "executed": 2, "threads": 64, "predicated": 40, "space": "global", "action": "load",
        "bytes_per_lane": 4, "requests": 2, "sectors": 7, "ideal": 5,
    }  # fmt: skip
    return InstructionCounts(**(values | more))


def test_machine_accesses_are_summed_by_space_action_and_width():
    found = machine_accesses(
        [
            counted("LDG"),
            counted("LDG"),
            counted("LDG", bytes_per_lane=16),
            counted("STG", action="store"),
            counted("FFMA", space=None, action=None),
            counted("LDS", space="shared", executed=0),
        ]
    )
    assert [(a.space, a.action, a.instruction_bytes) for a in found] == [
        ("global", "load", 4),
        ("global", "load", 16),
        ("global", "store", 4),
    ]
    assert found[0] == MachineAccess(
        space="global", action="load", instruction_bytes=4, executed=4, requests=4, lanes=80,
        sectors=14, wavefronts=0, conflict_free=0, ideal=10,
    )  # fmt: skip
