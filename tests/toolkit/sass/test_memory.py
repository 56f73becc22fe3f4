"""Loads, stores and atomics, one instruction at a time, and what they count."""

import numpy as np
import pytest

from analysis import coalescing
from analysis.errors import LaunchError, UnsupportedError
from tests.probe import FULL, State, buffer_of, holding, probe
from tests.refusals import refusal
from toolkit import simulate
from toolkit.sass.core.binding import COUNT
from toolkit.sass.machine import MISALIGNED
from toolkit.sass.space import LOCAL_WINDOW, SHARED_WINDOW

LANES = np.arange(32)
MODIFIERS = {1: ".U8", 2: ".U16", 4: "", 8: ".64", 16: ".128"}


def noise(count=4096):
    return np.random.default_rng().integers(0, 256, count, dtype=np.uint8)


def filled(count=4096):
    return buffer_of(noise(count))


def pointing(data, offsets=0, **more):
    """A buffer of the data, and in R2 of each lane an address so many bytes behind its start."""
    buffer = buffer_of(data)
    return buffer, holding(R2_64=buffer.address + offsets, **more)


def count_of(text, state, **options):
    counts = np.zeros(2, dtype=COUNT)
    probe(text, state, counts=counts, **options)
    return counts[0]


def random_addresses(rng, width, reach):
    """Addresses of a random kind: strided, repeated, permuted, random."""
    kinds = (
        LANES * rng.integers(0, 9),
        LANES // (1 << rng.integers(0, 5)) * rng.integers(1, 9),
        rng.permutation(32),
        (LANES ^ rng.integers(0, 32)) * rng.integers(0, 5),
        rng.integers(0, reach // width, 32),
    )
    return (kinds[rng.integers(5)] + rng.integers(0, 8)) * width % reach


def active_lanes(rng):
    return int(rng.choice([FULL, 1, 0x80000000, 0xFFFF, rng.integers(1, FULL)]))


def as_mask(lanes):
    return [bool(lanes >> lane & 1) for lane in range(32)]


# What is loaded and stored.


def test_stores_of_rz_write_zeros():
    buffer, state = pointing(noise(), LANES * 16)
    probe("STG.E.128 [R2.64], RZ", state, buffers=[buffer])
    assert not buffer.data[:512].any()


WHOLE, PARTS = 0xFF, (0xFF, 0x81, 0xF0, 0x0F, 0x7F, 0x24)


@pytest.mark.parametrize("mask", PARTS)
@pytest.mark.parametrize("opcode", ["LDG.E.ENL2", "LD.E.NA.EFL2", "LDG.E.ELL2"])
def test_a_load_of_256_bits_is_two_of_128(opcode, mask):
    """The words of the mask are written, those of each half from its register on."""
    buffer, state = pointing(noise(), LANES * 32)
    wide = probe(f"{opcode}.256 R12, R8, [R2.64+0x20], {mask:#x}", state, buffers=[buffer])
    text = "LDG.E.128 R8, [R2.64+0x20]\nLDG.E.128 R12, [R2.64+0x30]"
    narrow = probe(text, state, buffers=[buffer]).r[8:16]
    wanted = state.r.copy()
    for first in (0, 4):
        words = [first + k for k in range(4) if mask >> first + k & 1]
        wanted[8 + first : 8 + first + len(words)] = narrow[words]
    np.testing.assert_array_equal(wide.r, wanted)


def test_a_store_of_256_bits_is_two_of_128():
    rng = np.random.default_rng()
    data = {f"R{n}": rng.integers(0, 1 << 32, 32) for n in range(8, 16)}
    wide, state = pointing(noise(), LANES * 64, **data)
    probe("STG.E.ENL2.256 [R2.64+0x20], R8, R12", state, buffers=[wide], lanes=0x0FF0FF01)
    narrow, state = pointing(noise(), LANES * 64, **data)
    text = "STG.E.128 [R2.64+0x20], R8\nSTG.E.128 [R2.64+0x30], R12"
    probe(text, state, buffers=[narrow], lanes=0x0FF0FF01)
    written = np.zeros(4096, bool)
    for lane in LANES[[bool(0x0FF0FF01 >> k & 1) for k in LANES]]:
        written[64 * lane + 32 : 64 * lane + 64] = True
    np.testing.assert_array_equal(wide.data[:4096][written], narrow.data[:4096][written])
    assert count_of("STG.E.ENL2.256 [R2.64], RZ, R8", state, buffers=[narrow])["sectors"] == 32


def test_a_misaligned_access_of_256_bits_is_a_fault():
    buffer, state = pointing(noise(), LANES * 16)
    with pytest.raises(LaunchError, match=f"fault of kind {MISALIGNED}"):
        probe("LDG.E.ENL2.256 R12, R8, [R2.64]", state, buffers=[buffer])


def test_the_address_is_a_sum_of_register_uniform_register_and_offset():
    buffer = filled()
    state = holding(R2=LANES * 4, UR4_64=buffer.address + 64)
    after = probe("LDG.E R8, [R2.U32+UR4+-0x40]", state, buffers=[buffer])
    assert np.array_equal(after.r[8], buffer.data[:128].view(np.uint32))


def test_a_scaled_shared_address():
    state = holding(R2=LANES, R3=LANES + 100)
    text = "STS [R2.X4+0x80], R3\nLDS R5, [R2.X4+0x80]"
    after = probe(text, state, shared_bytes=512)
    assert np.array_equal(after.r[5], LANES + 100)


def test_generic_addresses_reach_all_three_memories_in_one_request():
    buffer = filled()
    probe_text = "STS [R2], R6\nSTL [R2], R6\nLD.E R8, [R4.64]"
    window = np.where(LANES % 3 == 0, SHARED_WINDOW, LOCAL_WINDOW)
    addresses = np.where(LANES % 3 == 2, buffer.address, window) + LANES * 4
    state = holding(R2=LANES * 4, R4_64=addresses, R6=LANES + 7)
    after = probe(probe_text, state, buffers=[buffer], shared_bytes=128, local_bytes=128)
    words = buffer.data[:128].view(np.uint32)
    assert np.array_equal(after.r[8], np.where(LANES % 3 == 2, words, LANES + 7))


# What is counted.


@pytest.mark.parametrize(("width", "modifier"), MODIFIERS.items())
def test_sectors_are_those_of_the_analysis(width, modifier):
    rng = np.random.default_rng()
    buffer = buffer_of(np.zeros(1 << 16, np.uint8))
    for _ in range(150):
        at = random_addresses(rng, width, 1 << 14)
        lanes = active_lanes(rng)
        state = holding(R2_64=buffer.address + at)
        for text in (f"LDG.E{modifier} R4, [R2.64]", f"STG.E{modifier} [R2.64], R4"):
            count = count_of(text, state, lanes=lanes, buffers=[buffer])
            options = {"width_bytes": width, "active": as_mask(lanes)}
            assert count["requests"] == 1
            assert count["sectors"] == coalescing.sectors(at, **options)
            assert count["ideal"] == coalescing.ideal_sectors(at, **options)


@pytest.mark.parametrize(("width", "modifier"), MODIFIERS.items())
@pytest.mark.parametrize("operation", ["load", "store"])
def test_wavefronts_are_those_of_the_analysis(width, modifier, operation):
    rng = np.random.default_rng()
    for _ in range(200):
        at = random_addresses(rng, width, 1 << 13)
        lanes = active_lanes(rng)
        state = holding(R2=at)
        text = f"LDS{modifier} R4, [R2]" if operation == "load" else f"STS{modifier} [R2], R4"
        count = count_of(text, state, lanes=lanes, shared_bytes=1 << 13)
        wanted = coalescing.shared_wavefronts(
            at, width_bytes=width, operation=operation, active=as_mask(lanes)
        )
        assert count["wavefronts"] == wanted.wavefronts
        assert count["conflict_free"] == wanted.groups


@pytest.mark.parametrize(("width", "modifier"), MODIFIERS.items())
def test_wavefronts_of_growing_addresses_are_those_of_the_analysis(width, modifier):
    rng = np.random.default_rng()
    for stride in (1, 2, 3, 6, 8, 32):
        lanes = active_lanes(rng)
        at = stride * width * LANES
        count = count_of(
            f"LDS{modifier} R4, [R2]", holding(R2=at), lanes=lanes, shared_bytes=1 << 15
        )
        wanted = coalescing.shared_wavefronts(
            at, width_bytes=width, operation="load", active=as_mask(lanes)
        )
        assert (count["wavefronts"], count["conflict_free"]) == (wanted.wavefronts, wanted.groups)


def test_requests_of_two_masks_in_turn_are_each_counted_as_the_analysis_does():
    loop = """
    ISETP.NE.AND P1, PT, R6, RZ, PT
    @P1 LDS R4, [R2]
    LOP3.LUT R6, R6, R7, RZ, 0x3c, !PT
    IADD3 R12, R12, 0x1, RZ
    ISETP.GE.AND P0, PT, R12, 0x10, PT
    @!P0 BRA 0x0
    """
    first, second = LANES > 0, LANES % 4 > 1
    state = holding(R2=24 * LANES, R6=first, R7=first ^ second)
    counts = np.zeros(7, dtype=COUNT)
    probe(loop, state, counts=counts, shared_bytes=1 << 10)
    found = [
        coalescing.shared_wavefronts(24 * LANES, width_bytes=4, operation="load", active=active)
        for active in (first, second)
    ]
    assert counts["predicated"][1] == 8 * (first.sum() + second.sum())
    assert counts["wavefronts"][1] == 8 * sum(one.wavefronts for one in found)


@pytest.mark.parametrize(
    ("text", "of_alike", "of_apart"),
    [
        ("ATOMS.ADD R4, [R2], R6", 32, 1),
        ("ATOMS.EXCH R4, [R2], R6", 32, 1),
        ("ATOMS.MAX R4, [R2], R6", 32, 1),
        ("ATOMS.POPC.INC.32 RZ, [R2]", 1, 1),
        ("ATOMS.CAS R4, [R2], R6, R7", 64, 2),
        ("ATOMS.CAST.SPIN R4, [R2], R6, R7", 2, 2),
        ("ATOMS.CAST.SPIN.64 R4, [R2], R6, R8", 4, 4),
    ],
)
def test_lanes_with_one_address_take_turns_unless_they_are_counted(text, of_alike, of_apart):
    """As an H200 does (`validation/timing/recorded/shared_h200.json`)."""
    width = 8 if ".64" in text else 4
    for place, wavefronts in ((0 * LANES, of_alike), (width * LANES, of_apart)):
        count = count_of(text, holding(R2=place), shared_bytes=1 << 13)
        assert count["wavefronts"] == wavefronts
        assert count["conflict_free"] == wavefronts  # no other addresses would save any
    # different words of one bank: padding saves all but one, or two of a compare-and-swap
    count = count_of(text, holding(R2=128 * np.arange(32)), shared_bytes=1 << 13)
    assert count["wavefronts"] == 32 * of_apart // (width // 4)
    assert count["conflict_free"] == of_apart


def test_shapes_that_return_in_turn_are_each_counted_as_the_analysis_does():
    """Rows of 128 bytes whose pieces of 16 are swizzled by the row, read piece by piece."""
    loop = """
    LDS.128 R4, [R2]
    LOP3.LUT R2, R2, R3, RZ, 0x3c, !PT
    IADD3 R12, R12, 0x1, RZ
    ISETP.GE.AND P0, PT, R12, 0x10, PT
    @!P0 BRA 0x0
    """
    row, shared = LANES % 8, 8 * 128
    state = holding(R2=row * 128 + row * 16, R3=5 * 16)  # piece 0, and in turn 5 and 0
    counts = np.zeros(6, dtype=COUNT)
    probe(loop, state, counts=counts, shared_bytes=shared)
    found = [
        coalescing.shared_wavefronts(
            row * 128 + (row ^ piece) * 16, width_bytes=16, operation="load"
        ).wavefronts
        for piece in (0, 5)
    ]
    assert counts["executed"][0] == 16
    assert counts["wavefronts"][0] == 8 * sum(found)


def test_bytes_are_known_to_be_written_one_by_one():
    """A store of 2 bytes leaves their neighbours in a word unwritten, and only these."""
    source = """
    extern "C" __global__ void k(int *out)
    {
        extern __shared__ unsigned short half[];
        half[2 * threadIdx.x] = 1;
        out[threadIdx.x] = half[2 * threadIdx.x];
        if (threadIdx.x < 5) out[threadIdx.x] += half[2 * threadIdx.x + 1];
    }
    """
    launch = {"grid": 1, "block": 32, "dynamic_shared_bytes": 256, "arch": "sm_90"}
    found = simulate(source, "k", arguments=[np.zeros(32, np.int32)], **launch, predict=False)
    assert any("read 5 times where no thread had written" in note for note in found.notes)


def test_lanes_whose_guard_is_false_make_no_request():
    buffer, state = pointing(noise(), LANES * 4)
    count = count_of("@P0 LDG.E R4, [R2.64]", state, buffers=[buffer])
    assert (count["executed"], count["threads"], count["predicated"]) == (1, 32, 0)
    assert (count["requests"], count["sectors"]) == (0, 0)


def test_local_memory_is_interleaved_by_words():
    state = holding(R2=64)
    count = count_of("LDL.128 R4, [R2]", state, local_bytes=128)
    assert count["sectors"] == 16  # 4 words of 32 lanes: 4 runs of 128 bytes


# Atomics.


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [
        ("ADD", lambda old, x: old + x),
        ("MIN", min),
        ("MAX", max),
        ("AND", lambda old, x: old & x),
        ("OR", lambda old, x: old | x),
        ("XOR", lambda old, x: old ^ x),
        ("INC", lambda old, x: 0 if old >= x else old + 1),
        ("DEC", lambda old, x: x if old == 0 or old > x else old - 1),
        ("EXCH", lambda old, x: x),
    ],
)
def test_atomics_of_a_warp_happen_one_after_another(operation, wanted):
    rng = np.random.default_rng()
    for _ in range(20):
        data = rng.integers(0, FULL, 8, dtype=np.uint32)
        which = rng.integers(0, 8, 32)
        buffer, state = pointing(data, which * 4, R4=rng.integers(0, FULL, 32))
        expected, old = [int(x) for x in data], []
        for lane in range(32):
            old.append(expected[which[lane]])
            new = wanted(old[-1], int(state.r[4, lane]))
            expected[which[lane]] = new & FULL
        text = f"ATOMG.E.{operation}.STRONG.GPU PT, R6, [R2.64], R4"
        after = probe(text, state, buffers=[buffer])
        assert after.r[6].tolist() == old
        assert data.tolist() == expected


def test_compare_and_swap_stores_for_the_first_lane_only():
    data = np.array([5], dtype=np.uint32)
    buffer, state = pointing(data, R4=5, R5=LANES + 100)
    after = probe("ATOMG.E.CAS.STRONG.GPU PT, R6, [R2], R4, R5", state, buffers=[buffer])
    assert data[0] == 100
    assert after.r[6].tolist() == [5] + [100] * 31


def test_the_spinning_form_says_whether_it_stored():
    state = holding(R4=LANES + 1)
    text = "STS [RZ], RZ\nATOMS.CAST.SPIN P1, [RZ], RZ, R4\nATOMS.CAST.SPIN R6, [RZ], RZ, R4"
    after = probe(text, state, shared_bytes=16)
    assert after.p[1] == 0b01  # lane 0 stores 1, and 0 no longer stands there
    assert not after.r[6].any()


def test_one_lane_of_an_address_stores_at_a_time_even_if_the_value_stays():
    text = "STS [RZ], RZ\nATOMS.CAST.SPIN P1, [RZ], RZ, RZ\nATOMS.CAST.SPIN R6, [RZ], RZ, RZ"
    after = probe(text, holding(), shared_bytes=16)
    assert after.p[1] == 0b01
    assert after.r[6].tolist() == [1] + [0] * 31


def test_float_addition_on_global_memory_flushes_subnormal_numbers():
    data = np.array([1e-40, 1.5], dtype=np.float32)
    buffer, state = pointing(data)
    probe("RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R2.64], R4", state, buffers=[buffer])
    assert data.tolist() == [0, 1.5]


def test_a_generic_atomic_leaves_shared_memory_alone_and_says_so():
    data = np.zeros(1, dtype=np.float32)
    buffer = buffer_of(data)
    addresses = np.where(LANES % 2, SHARED_WINDOW, buffer.address)
    state = holding(R2_64=addresses, R4=np.float32(1).view(np.uint32))
    text = "ATOM.E.ADD.F32.FTZ.RN.STRONG.GPU P0, RZ, [R2.64], R4\nQSPC.E.S P1, RZ, [R2]"
    after = probe(text, state, buffers=[buffer], shared_bytes=64)
    assert data[0] == 16
    assert (after.p[0], after.p[1]) == (0x55555555, 0xAAAAAAAA)


@pytest.mark.parametrize("text", ["ATOM.E.ADD.STRONG.GPU PT, R6, {}", "RED.E.ADD.STRONG.GPU {}"])
def test_a_generic_atomic_that_no_code_stands_behind_works_on_shared_memory_too(text):
    data = np.zeros(1, dtype=np.uint32)
    buffer = buffer_of(data)
    state = holding(R2_64=np.where(LANES % 2, SHARED_WINDOW, buffer.address), R4=3)
    program = f"STS [RZ], RZ\n{text.format('[R2.64]')}, R4\nLDS R8, [RZ]"
    after = probe(program, state, buffers=[buffer], shared_bytes=64)
    assert data[0] == 16 * 3
    assert (after.r[8] == 16 * 3).all()


def test_a_generic_atomic_on_local_memory_stops():
    state = holding(R2_64=LOCAL_WINDOW)
    text = "ATOM.E.ADD.STRONG.GPU PT, R6, [R2.64], R4"
    with pytest.raises(LaunchError):
        probe(text, state, local_bytes=64)


def halves(kind, numbers):
    """Words of pairs of a format."""
    if kind == "F16":
        return np.array(numbers, np.float16).view(np.uint32)
    return (np.array(numbers, np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint32)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("MIN", [-4.0, -0.0, 2.0, 1.0]),
        ("MAX", [1.0, 0.0, 3.0, 1.0]),
        ("ADD", [-3.0, 0.0, 5.0, np.nan]),
    ],
)
@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("count", [2, 4])
def test_vectors_of_halves(what, expected, kind, count):
    """One lane; of a number and a NaN the number, and -0 is below +0."""
    data = halves(kind, [1.0, -0.0, 3.0, np.nan][-count:])
    buffer, state = pointing(data)
    state.r[4 : 4 + count // 2] = halves(kind, [-4.0, 0.0, 2.0, 1.0][-count:])[:, None]
    text = f"REDG.E.{what}.{kind}x{count}.RN.STRONG.GPU [R2.64], R4"
    probe(text, state, buffers=[buffer], lanes=1)
    wanted = halves(kind, expected[-count:]).view(np.uint16)
    for got, word, number in zip(data.view(np.uint16), wanted, expected[-count:], strict=True):
        assert got & 0x7FFF > 0x7C00 if np.isnan(number) else got == word


def test_vectors_of_floats_give_their_old_values():
    data = np.arange(128, dtype=np.float32)
    buffer, state = pointing(data, LANES * 16)
    state.r[4:8] = np.array([1, 2, 3, 4], np.float32).view(np.uint32)[:, None]
    text = "ATOMG.E.ADD.F32x4.FTZ.RN.STRONG.GPU PT, R8, [R2.64], R4"
    counts = np.zeros(2, dtype=COUNT)
    after = probe(text, state, buffers=[buffer], counts=counts)
    assert after.r[8:12].T.copy().view(np.float32).ravel().tolist() == list(range(128))
    assert data.tolist() == [x + 1 + x % 4 for x in range(128)]
    assert (counts["requests"][0], counts["sectors"][0]) == (1, 16)  # 512 B / 32 B


# Asynchronous copies.


def test_an_asynchronous_copy_fills_with_zeros_where_its_predicate_is_false():
    buffer, state = pointing(noise(), LANES * 16, R4=LANES * 16, P0=0x0000FFFF)
    text = "LDGSTS.E.BYPASS.128 [R4], [R2.64], P0\nLDS.128 R8, [R4]"
    counts = np.zeros(3, dtype=COUNT)
    after = probe(text, state, buffers=[buffer], shared_bytes=512, counts=counts)
    wanted = buffer.data[:512].view(np.uint32).reshape(32, 4).copy()
    wanted[16:] = 0
    assert np.array_equal(after.r[8:12].T, wanted)
    assert counts["sectors"][0] == 8  # 16 lanes of 16 bytes


@pytest.mark.parametrize(("modifier", "width"), [("", 4), (".64", 8), (".128", 16)])
def test_a_partial_copy_takes_from_the_address_how_much_it_leaves_out(modifier, width):
    # compilers add (width - bytes to copy) to the address
    buffer, state = pointing(noise(), LANES * width + LANES % width, R4=LANES * width)
    text = f"LDGSTS.E{modifier}.ZFILL [R4], [R2.64], PT\nLDS{modifier} R8, [R4]"
    after = probe(text, state, buffers=[buffer], shared_bytes=512)
    for lane in range(32):
        length = width - lane % width
        row = after.r[8 : 8 + width // 4, lane].tobytes()
        start = lane * width
        assert row[:length] == buffer.data[start : start + length].tobytes()
        assert not any(row[length:])


def test_a_partial_copy_may_end_with_its_buffer_and_not_after_it():
    buffer = filled(20)
    text = "LDGSTS.E.128.ZFILL [R4], [R2.64], PT\nLDS R8, [R4]"
    state = holding(R2_64=buffer.address + 16 + 12)
    options = {"buffers": [buffer], "shared_bytes": 16}
    after = probe(text, state, **options)
    assert after.r[8, 0] == buffer.data[16:].view(np.uint32)[0]
    beyond = holding(R2_64=buffer.address + 16 + 11)
    with pytest.raises(LaunchError):
        probe(text, beyond, **options)


# What is refused.


@pytest.mark.parametrize(
    ("text", "offset"),
    [("LDG.E R4, [R2.64]", 4096), ("STG.E [R2.64], R4", -4), ("LDG.E.64 R4, [R2.64]", 4)],
)
def test_global_accesses_outside_a_buffer_or_off_their_alignment_stop(text, offset):
    buffer = filled()
    state = holding(R2_64=buffer.address + offset)
    with pytest.raises(LaunchError):
        probe(text, state, buffers=[buffer])


@pytest.mark.parametrize("text", ["LDS R4, [R2]", "STS [R2], R4", "LDL R4, [R2]", "STL [R2], R4"])
def test_shared_and_local_accesses_outside_stop(text):
    state = holding(R2=128)
    with pytest.raises(LaunchError):
        probe(text, state, shared_bytes=128, local_bytes=128)


def test_what_is_no_address_is_refused():
    assert "wants an address where this has a register (R2): run it on a GPU" in refusal(
        UnsupportedError, probe, "LDG.E R4, R2", State()
    )


def test_unknown_modifiers_are_refused_by_name():
    assert "LDG with .MADEUP" in refusal(
        UnsupportedError, probe, "LDG.E.MADEUP R4, [R2.64]", State()
    )
