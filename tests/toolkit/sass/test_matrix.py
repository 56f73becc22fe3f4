"""LDSM, STSM and MOVM: values, wavefronts, faults, and what `check` says of them.

Wavefronts and latencies were measured on an H100 (CUDA 13.0): the rows of each matrix take as many
wavefronts as the fullest group of four banks has distinct rows, and two matrices share none; x1, x2
and x4 take 23, 25 and 29 clocks until a dependent instruction issues.
"""

import numpy as np
import pytest

from analysis.errors import LaunchError, UnsupportedError
from tests.probe import holding, instructions, probe
from toolkit import check, simulate
from toolkit.sass.core import binding as core
from toolkit.sass.isa.registry import lower

FIRST, SHARED_BYTES = 8, 1 << 12
COUNTS = {"": 1, ".2": 2, ".4": 4}


def fragment(matrix):
    """The register of each lane that holds a matrix of 8 x 8 halves: two neighbours of a row."""
    return np.ascontiguousarray(matrix).reshape(-1).view(np.uint32)


def random_matrices(rng, count):
    return rng.integers(0, 1 << 16, (count, 8, 8), dtype=np.uint16)


def random_rows(rng, count):
    """Distinct rows of 16 bytes in random places, one per address."""
    return rng.choice(SHARED_BYTES // 16, 8 * count, replace=False) * 16


def addresses(rows):
    """Of the first lanes; the others hold what must not be read."""
    return np.concatenate([rows, np.full(32 - len(rows), 0xFFFFFFF0)]).astype(np.uint32)


@pytest.mark.parametrize("suffix", COUNTS)
@pytest.mark.parametrize("transposed", [False, True])
def test_a_store_and_a_load_move_rows(suffix, transposed):
    """Each lane gives the address of a row; a matrix stored as it is may be loaded transposed."""
    rng, count = np.random.default_rng(COUNTS[suffix]), COUNTS[suffix]
    matrices, rows = random_matrices(rng, count), random_rows(rng, count)
    registers = {f"R{FIRST + k}": fragment(matrices[k]) for k in range(count)}
    other = "MT88" if transposed else "M88"
    for stored, loaded in (("M88", other), (other, "M88")):
        after = probe(
            f"STSM.16.{stored}{suffix} [R2+0x20], R{FIRST}\n"
            f"LDSM.16.{loaded}{suffix} R16, [R2+UR4+0x10]\n@P0 LDS.128 R4, [R2+0x20]",
            holding(R2=addresses(rows), UR4=16, P0=(1 << len(rows)) - 1, **registers),
            shared_bytes=SHARED_BYTES + 32,
        )
        for k, matrix in enumerate(matrices):
            wanted = fragment(matrix.T if transposed else matrix)
            np.testing.assert_array_equal(after.r[16 + k], wanted)
        kept = np.swapaxes(matrices, 1, 2) if stored == "MT88" else matrices
        kept = np.ascontiguousarray(kept).reshape(len(rows), 8).view(np.uint32)
        np.testing.assert_array_equal(after.r[4:8, : len(rows)].T, kept)


@pytest.mark.parametrize("suffix", COUNTS)
@pytest.mark.parametrize(("form", "bits"), [("U4x16P64TO8", 4), ("U6x16P32TO8", 6)])
def test_a_load_widens_elements_of_4_and_6_bits(form, bits, suffix):
    """`ldmatrix.m8n16.b8x16`: rows of 16 elements without gaps; each lane gets four, as bytes."""
    rng, count = np.random.default_rng(bits), COUNTS[suffix]
    elements, rows = rng.integers(0, 1 << bits, (count, 8, 16), np.uint8), random_rows(rng, count)
    places = elements[..., None] >> np.arange(bits) & 1
    packed = np.packbits(places.reshape(8 * count, -1), axis=1, bitorder="little")
    padded = rng.integers(0, 256, (8 * count, 16), np.uint8)  # padding is not read
    padded[:, : packed.shape[1]] = packed
    words = np.zeros((4, 32), np.uint32)
    words[:, : len(rows)] = padded.view(np.uint32).T
    after = probe(
        f"@P0 STS.128 [R2], R4\nLDSM.{form}.M816{suffix} R16, [R2]",
        holding(
            R2=addresses(rows),
            P0=(1 << len(rows)) - 1,
            **{f"R{4 + k}": words[k] for k in range(4)},
        ),
        shared_bytes=SHARED_BYTES,
    )
    for k in range(count):
        np.testing.assert_array_equal(after.r[16 + k], elements[k].reshape(-1).view(np.uint32))


WIDENING = r"""
extern "C" __global__ void widened(unsigned *out, const unsigned *in, int words)
{
    __shared__ __align__(16) unsigned tile[32][4];
    for (int k = 0; k < words; ++k) tile[threadIdx.x][k] = in[4 * threadIdx.x + k];
    __syncwarp();
    unsigned x, y, z, w, row = __cvta_generic_to_shared(tile[threadIdx.x]);
    asm volatile("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(row));
    out[threadIdx.x] = x ^ y ^ z ^ w;
}
"""


@pytest.mark.parametrize(("words", "findings"), [(2, False), (1, True)])
def test_padding_of_widened_rows_need_not_be_written(words, findings):
    rng = np.random.default_rng(1)
    given = [np.zeros(32, np.uint32), rng.integers(0, 1 << 32, 128, np.uint32), np.int32(words)]
    launch = {"grid": 1, "block": 32, "arguments": given, "arch": "sm_120"}
    assert bool(check(WIDENING, "widened", **launch).findings) == findings
    notes = simulate(WIDENING, "widened", predict=False, **launch).notes
    assert any("32 times where no thread had written" in note for note in notes) == findings


def test_a_moved_matrix_is_transposed():
    (matrix,) = random_matrices(np.random.default_rng(5), 1)
    after = probe("MOVM.16.MT88 R3, R2; MOVM.16.MT88 R2, R2", holding(R2=fragment(matrix)))
    np.testing.assert_array_equal(after.r[3], fragment(matrix.T))
    np.testing.assert_array_equal(after.r[2], fragment(matrix.T))


def test_the_destination_of_a_load_may_hold_its_addresses():
    (matrix,) = random_matrices(np.random.default_rng(6), 1)
    text = "STSM.16.M88 [R2], R3; LDSM.16.M88 R2, [R2]"
    state = holding(R2=np.arange(32) * 16, R3=fragment(matrix))
    np.testing.assert_array_equal(probe(text, state, shared_bytes=512).r[2], fragment(matrix))


@pytest.mark.parametrize(
    ("suffix", "pitch", "wavefronts", "conflict_free"),
    [
        ("", 16, 1, 1),  # 8 rows in 8 groups of four banks
        ("", 32, 2, 1),  # 8 rows in 4 groups
        ("", 128, 8, 1),  # all rows in one group
        ("", 144, 1, 1),  # padded by 16 bytes
        ("", 0, 1, 1),  # one row is read once
        (".2", 0, 2, 2),  # matrices share no wavefront
        (".2", 16, 2, 2),
        (".4", 16, 4, 4),
        (".4", 128, 32, 4),
        (".4", 0, 4, 4),
    ],
)
@pytest.mark.parametrize("text", ["LDSM.16.M88{} R4, [R2]", "STSM.16.MT88{} [R2], R4"])
def test_each_matrix_takes_its_own_wavefronts(text, suffix, pitch, wavefronts, conflict_free):
    counts = np.zeros(2, core.COUNT)
    state = holding(R2=np.arange(32) * pitch)
    probe(text.format(suffix), state, shared_bytes=1 << 13, counts=counts)
    found = {name: int(counts[0][name]) for name in ("requests", "wavefronts", "conflict_free")}
    assert found == {
        "requests": 1,
        "wavefronts": wavefronts,
        "conflict_free": conflict_free,
    }


@pytest.mark.parametrize("text", ["LDSM.16.M88 R4, [R2]", "STSM.16.M88 [R2], R4"])
def test_addresses_are_whole_rows_in_shared_memory(text):
    probe(text, holding(R2=addresses(np.arange(8) * 16)), shared_bytes=128)
    for rows in (np.arange(8) * 16 + 8, np.arange(8) * 16 + 16):  # misaligned, past the end
        with pytest.raises(LaunchError):
            probe(text, holding(R2=addresses(rows)), shared_bytes=128)


@pytest.mark.parametrize(
    "text", ["LDSM.16.M88 R4, [R2]", "STSM.16.M88 [R2], R4", "MOVM.16.MT88 R4, R2"]
)
def test_a_part_of_a_warp_cannot_move_matrices(text):
    state = holding(R2=np.arange(32) * 16, P0=0xFFFF)
    with pytest.raises(LaunchError):
        probe(f"@P0 {text}", state, shared_bytes=512)
    probe(f"@P1 {text}", state, shared_bytes=512)  # no lane at all does nothing


@pytest.mark.parametrize(
    "text",
    ["LDSM.8.MT1616 R4, [R2]", "LDSM.M88 R4, [R2]", "LDSM.16 R4, [R2]", "MOVM.16.M832 R4, R2"],
)
def test_other_forms_are_refused(text):
    with pytest.raises(UnsupportedError, match="does not know"):
        lower(instructions(text))


SOURCE = r"""
extern "C" __global__ void moved(unsigned *out, const unsigned *in, int barriers)
{
    __shared__ __align__(16) unsigned tile[32 * 4];
    const int i = threadIdx.x;
    for (int k = 0; k < 4; ++k) tile[i + 32 * k] = in[i + 32 * k];
    if (barriers) __syncthreads();
    const unsigned at = unsigned(__cvta_generic_to_shared(tile + 4 * i)) + SHIFT;
    unsigned r[4], moved;
    asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    for (int k = 0; k < 4; ++k) out[i + 32 * k] = r[k];
    asm volatile("ldmatrix.sync.aligned.x2.trans.m8n8.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory");
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(moved) : "r"(r[1]));
    out[i + 128] = r[0];
    out[i + 160] = moved;
#ifdef STORED
    if (barriers) __syncthreads();
    asm volatile("stmatrix.sync.aligned.x4.trans.m8n8.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    __syncwarp();
    for (int k = 0; k < 4; ++k) out[4 * i + 192 + k] = tile[4 * i + k];
#endif
}
"""


def launch(**defines):
    names = "".join(f"#define {name} {value}\n" for name, value in defines.items())
    return names + ("" if "SHIFT" in defines else "#define SHIFT 0\n") + SOURCE


def moved(arch, stored):
    content = random_matrices(np.random.default_rng(7), 4)
    source = launch(STORED=1) if stored else launch()
    arguments = [np.zeros(320, np.uint32), content.reshape(-1).view(np.uint32), np.int32(1)]
    ran = simulate(source, grid=1, block=32, arguments=arguments, arch=arch, predict=False)
    return content, ran.outputs[0]


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_compiled_code_moves_matrices(arch):
    stored = arch in ("sm_90", "sm_120")
    content, out = moved(arch, stored)
    as_it_is, transposed = ([fragment(x) for x in y] for y in (content, np.swapaxes(content, 1, 2)))
    wanted = [*as_it_is, transposed[0], as_it_is[1]]
    if stored:  # x2 left two registers, of which the second was moved to another one
        first, second = content[0], content[1]
        wanted += [fragment(x) for x in (first, second, content[2].T, content[3].T)]
    np.testing.assert_array_equal(out[: 32 * len(wanted)], np.concatenate(wanted))


def checked(barriers, **defines):
    arguments = [np.zeros(320, np.uint32), np.zeros(128, np.uint32), np.int32(barriers)]
    return check(launch(**defines), grid=1, block=32, arguments=arguments, arch="sm_90")


def lines(found):
    return [tuple(x.line for x in finding.accesses) for finding in found.findings]


def test_check_knows_accesses_of_matrices():
    """Without the barriers a load may read before other lanes have stored."""
    assert not checked(1, STORED=1).findings
    found = checked(0, STORED=1)
    assert {finding.kind for finding in found.findings} == {"RAW"}
    shift = 2  # lines of #define in front
    assert lines(found) == [(6 + shift, 14 + shift), (6 + shift, 11 + shift)]


def test_a_block_of_less_than_a_warp_is_told():
    arguments = [np.zeros(320, np.uint32), np.zeros(128, np.uint32), np.int32(1)]
    found = check(launch(), grid=1, block=16, arguments=arguments, arch="sm_90").findings
    assert found[-1].kind == "divergent thread(s) in warp"
    assert "16 threads of a warp execute" in found[-1].message
    assert "the block has no more" in found[-1].message


DECIDES = r"""
extern "C" __global__ void decides(unsigned *out, const unsigned *in)
{
    __shared__ __align__(16) unsigned tile[32];
    const int i = threadIdx.x;
    tile[i] = in[i + 32 * blockIdx.x];
    __syncthreads();
    const unsigned at = unsigned(__cvta_generic_to_shared(tile + 4 * (i % 8)));
    unsigned r;
    asm volatile("ldmatrix.sync.aligned.x1.trans.m8n8.shared.b16 {%0}, [%1];"
                 : "=r"(r) : "r"(at) : "memory");
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(r));
    if (r > 5) out[i] = r;
}
"""


def test_what_a_load_of_matrices_gives_decides_like_any_data():
    """Blocks take different paths, so a few of them do not represent all."""
    content = np.arange(2048, dtype=np.uint32) % 7
    arguments = [np.zeros(32, np.uint32), content]
    few, every = (
        simulate(DECIDES, grid=64, block=32, arguments=arguments, arch="sm_90", blocks=blocks)
        for blocks in (None, "all")
    )
    assert few.counters == every.counters


def test_check_names_rows_outside_and_misaligned_ones():
    assert [x.kind for x in checked(1, SHIFT=16).findings] == ["out of bounds"]  # of .x4 alone
    assert {x.kind for x in checked(1, SHIFT=8).findings} == {"misaligned"}


def test_check_tells_of_rows_that_nobody_wrote():
    source = launch().replace("tile[i + 32 * k] = in[i + 32 * k];", "tile[i] = in[i];")
    arguments = [np.zeros(320, np.uint32), np.zeros(128, np.uint32), np.int32(1)]
    found = check(source, grid=1, block=32, arguments=arguments, arch="sm_90").findings
    assert {finding.kind for finding in found} == {"uninitialized read"}
