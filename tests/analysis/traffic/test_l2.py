"""Traffic below L1: reuse by hand and beside slow versions; what holds at the limits."""

from collections import Counter, defaultdict
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from analysis.coalescing import SECTOR_BYTES
from analysis.devices import find_device
from analysis.l2_state import L2State
from analysis.problem import Gemm, parse_shape
from analysis.traffic.block_schedule import BlockProgress, starts
from analysis.traffic.l2 import (
    FAR_FROM_WRITER,
    MOMENTS,
    PAIR_BYTES,
    ROUNDS,
    TOGETHER,
    Accesses,
    Pairs,
    Traffic,
    _gpc,
    caches_of,
    merged_stores,
    share_within,
    shared_in_l1,
    traffic,
)
from kernels import LADDER
from kernels.closed_forms import pieces_of_c, tiles_of_c
from tests.analysis.traffic.gemm_accesses import gemm_accesses

H200 = find_device("h200")
RTX_3090 = find_device("rtx-3090")  # L2 in one part, SMs that merge nothing
MIB = 2**20


def accesses(*rows, size=4096.0):
    """Accesses (time, piece, block, is_write) of whole pieces of one size."""
    time, piece, block, is_write = (np.array(column) for column in zip(*rows, strict=True))
    sizes = np.full(len(time), size)
    return Accesses(
        time=time.astype(np.float64),
        piece=piece,
        block=block,
        sectors=sizes / SECTOR_BYTES,
        size=sizes,
        is_write=is_write,
    )


def together(*parts):
    names = ("time", "piece", "block", "sectors", "size", "is_write")
    return Accesses(**{n: np.concatenate([getattr(part, n) for part in parts]) for n in names})


def passes(megabytes, times, *, is_write=False):
    """All pieces of a buffer in turn, several times over, by as many blocks as there are pieces."""
    pieces = megabytes * MIB // 4096
    rows = [
        (times_before + n / pieces, n, n, is_write)
        for times_before in range(times)
        for n in range(pieces)
    ]
    return accesses(*rows)


def on_h200(found, in_step=0.0, **more):
    return traffic(found, H200, in_step=in_step, **more)


# The native code beside a slow version of what the module says.


def footprint(visits, weights, window):
    """Mean weight of the different pieces in all windows of so many visits."""
    begins = range(len(visits) - window + 1)
    return np.mean([sum(weights[p] for p in set(visits[b : b + window])) for b in begins])


def beyond(distance, reach, width):
    return 1 / (1 + np.exp(-np.clip((distance - reach) / width, -50, 50)))


def slow_traffic(found, caches):
    """Sectors that cross between partitions, and bytes that DRAM reads and writes."""
    order = sorted(range(len(found.time)), key=lambda k: (found.time[k], k))
    names = [
        (round(found.time[k] * MOMENTS), int(found.piece[k]), bool(found.is_write[k]))
        for k in order
    ]
    visits = list(dict.fromkeys(names))
    readers = Counter(names)
    pieces = [piece for _, piece, _ in visits]
    every = sorted(set(pieces))
    size = dict(zip(found.piece.tolist(), found.size.tolist(), strict=True))
    pairs = set(zip(found.piece.tolist(), found.block.tolist(), strict=True))
    blocks = Counter(piece for piece, _ in pairs)
    written = {piece for _, piece, is_write in visits if is_write}
    at = {p: [k for k, piece in enumerate(pieces) if piece == p] for p in every}
    gaps = {k: k - before - 1 for p in every for before, k in pairwise(at[p])}

    def room_of_read(count):
        return 1 + (caches.both_sides - 1) * (1 - 2.0 ** (1 - max(count, 1)))

    room = {p: caches.write_room if p in written else 1.0 for p in every}
    for _ in range(ROUNDS):
        weights = {p: size[p] * room[p] for p in every}
        of_gap = {g: footprint(pieces, weights, g) for g in set(gaps.values())}
        gone = {k: beyond(of_gap[g], caches.read_reach, caches.read_width) for k, g in gaps.items()}
        missed = [
            0.0 if is_write else gone.get(k, 1.0) for k, (_, _, is_write) in enumerate(visits)
        ]
        for p in set(every) - written:
            room[p] = room_of_read(blocks[p] / max(1, sum(missed[k] for k in at[p])))
    crossing, dirty, left = 0.0, {}, 0.0
    for p in every:
        near, dirty[p] = 1.0, 0.0
        for k in at[p]:
            left += size[p] * dirty[p] * gone.get(k, 0)
            dirty[p] *= 1 - gone.get(k, 0)
            if visits[k][2]:
                near, dirty[p] = near * FAR_FROM_WRITER, 1.0
                continue
            unread, alone = missed[k] + (1 - missed[k]) * near, 0.5 ** readers[visits[k]]
            crossing += size[p] / SECTOR_BYTES * unread * (1 - alone)
            near = unread * alone
    for p in written:
        later = [q for q in every if at[q][-1] > at[p][-1]]
        any_room = {q: 1.0 if q in written else room_of_read(blocks[q]) for q in later}
        dirty_room = {
            q: dirty[q] + (1 - dirty[q]) / caches.write_room
            if q in written
            else (room_of_read(blocks[q]) / caches.write_room if blocks[q] > 1 else 0.0)
            for q in later
        }
        pushed_out, too_dirty = (
            beyond(sum(size[q] * rooms[q] for q in later), reach, width)
            for rooms, reach, width in (
                (any_room, caches.dirty_reach, caches.read_width),
                (dirty_room, caches.write_reach, caches.write_width),
            )
        )
        left += size[p] * dirty[p] * max(pushed_out, too_dirty)
    read = sum(size[p] * missed[k] for k, p in enumerate(pieces))
    return crossing if caches.partitions == 2 else 0.0, read, left


def slow_merging(found, caches, gpc_of):
    """Sectors that are fetched once for up to four SMs."""
    groups = defaultdict(list)
    for k in np.flatnonzero(~found.is_write):
        moment = round(found.time[k] * TOGETHER)
        groups[moment, found.piece[k], gpc_of[found.block[k]]].append(found.sectors[k])
    return sum(
        sum(sectors) * (1 - np.ceil(len(sectors) / caches.merging_sms) / len(sectors))
        for sectors in groups.values()
    )


@pytest.mark.parametrize("device", [H200, RTX_3090], ids=lambda device: device.key)
def test_traffic_is_that_of_a_slow_version(device):
    rng = np.random.default_rng()
    count, pieces, blocks = 250, 60, 300
    sizes = rng.integers(1, 80, pieces) * 32768.0
    piece, block = rng.integers(0, pieces, count), rng.integers(0, blocks, count)
    random = Accesses(
        time=rng.integers(0, 60, count) / 20 + rng.choice([0, 1e-5], count),
        piece=piece,
        block=block,
        sectors=sizes[piece] / SECTOR_BYTES * rng.random(count),
        size=sizes[piece],
        is_write=rng.random(count) < 0.3,
    )
    speeds = 1 + rng.choice([0, 1e-6, 1e-2], device.sm_count)
    found = traffic(random, device, in_step=0.7, relative_times=speeds)
    caches = caches_of(device)
    gpcs = _gpc(np.arange(blocks), min(device.sm_count, int(block.max()) + 1), device.sm_count)
    merged = found.fetched_sectors - 0.7 * slow_merging(random, caches, gpcs)
    assert found.merged_sectors == pytest.approx(merged)
    in_time = replace(random, time=random.time * speeds[block % device.sm_count])
    crossing, read, written = slow_traffic(in_time, caches)
    assert found.l2_read_sectors == pytest.approx(merged + crossing)
    assert found.dram_read_bytes == pytest.approx(read)
    assert found.dram_write_bytes == pytest.approx(written)


def test_no_accesses_have_no_traffic():
    arrays = vars(accesses((0.0, 0, 0, True))).items()
    nothing = Accesses(
        **{name: value[:0] for name, value in arrays if isinstance(value, np.ndarray)}
    )
    found = dict(vars(on_h200(nothing, 1.0)))
    assert set(found.pop("soon_shares")) == {1.0}  # none is late
    assert set(found.values()) == {0.0}


# DRAM.


@pytest.mark.parametrize("device", [H200, RTX_3090])
def test_what_fits_into_l2_comes_from_dram_once(device):
    small = int(caches_of(device).read_reach // (2 * MIB))  # type: ignore[arg-type]
    found = traffic(passes(small, 3), device, in_step=0.0)  # type: ignore[arg-type]
    assert found.dram_read_bytes == pytest.approx(small * MIB, rel=0.01)


@pytest.mark.parametrize(
    ("megabytes", "passes_from_dram"),
    [(28, 1.0), (40, 1.01), (44, 1.16), (48, 1.58), (52, 1.89), (64, 2.0)],
    # on an H200 (docs/experiments.md), of which 1 is the first pass
)
def test_the_reach_of_l2_is_that_of_an_h200(megabytes, passes_from_dram):
    found = on_h200(passes(megabytes, 2))
    assert found.dram_read_bytes / (megabytes * MIB) == pytest.approx(passes_from_dram, abs=0.13)


@pytest.mark.parametrize("apart", [-0.5, 0.0, 0.5])
def test_pieces_that_are_also_read_are_written_back(apart):
    """They are read before, as in `x += 1`, at the same time, as by an atomic, or afterwards."""
    writes = passes(256, 1, is_write=True)
    reads = replace(
        writes,
        time=writes.time + apart / 4096,
        is_write=~writes.is_write,
    )
    alone, beside = (on_h200(one, 1.0) for one in (writes, together(reads, writes)))
    assert beside.dram_write_bytes == pytest.approx(alone.dram_write_bytes, rel=0.1)


def test_written_pieces_stay_in_l2_as_far_as_they_fit():
    # on an H200 27.4 to 27.9 MiB stay, whatever is written in all
    assert on_h200(passes(16, 1, is_write=True)).dram_write_bytes < 0.2 * MIB
    found = on_h200(passes(80, 1, is_write=True))
    assert found.dram_write_bytes == pytest.approx((80 - 27.4) * MIB, rel=0.02)
    assert found.dram_read_bytes == 0  # whole sectors are written: nothing is fetched for them


# L2.


@pytest.mark.parametrize(("readers", "crossing"), [(1, 0.5), (2, 0.75), (3, 0.875)])
def test_a_sector_crosses_over_once_if_any_reader_is_on_the_far_side(readers, crossing):
    found = on_h200(accesses(*((0.1 * n, 0, n, False) for n in range(readers)), size=32.0))
    assert found.l2_read_sectors == pytest.approx(readers + crossing)


def test_nothing_crosses_over_where_l2_is_in_one_part():
    found = traffic(passes(1, 1), RTX_3090, in_step=1.0)
    assert found.l2_read_sectors == found.merged_sectors == found.fetched_sectors
    written = traffic(passes(1, 1, is_write=True), RTX_3090, in_step=1.0)
    assert written.l2_write_sectors == MIB / SECTOR_BYTES


def test_half_of_all_writes_cross_over():
    found = on_h200(passes(1, 1, is_write=True))
    assert found.l2_write_sectors == 1.5 * MIB / SECTOR_BYTES


def readers(*blocks, of):
    """One sector, read by some blocks at once; of so many blocks the last one reads another."""
    rows = [(0.5, 0, block, False) for block in blocks]
    return accesses(*rows, (0.5, 1, of - 1, False), size=32.0)


def test_sms_of_a_gpc_fetch_a_sector_once_as_far_as_they_are_in_step():
    together = readers(*range(8), of=132)  # the first eight blocks run in one GPC
    assert on_h200(together).merged_sectors == 9
    assert on_h200(together, 1.0).merged_sectors == 3
    assert on_h200(together, 0.5).merged_sectors == 6
    assert traffic(together, RTX_3090, in_step=1.0).merged_sectors == 9
    apart = replace(together, time=np.arange(9) / 9)
    assert on_h200(apart, 1.0).merged_sectors == 9


@pytest.mark.parametrize(
    ("apart", "share"),
    [
        (0, 1),  # all three repeated reads come with the first one
        (1 / 100, 1 / 3),  # 1/100, 2/100 and 3/100 later: one within 1/64
        (1 / 20, 0),
    ],
)
def test_repeated_reads_coincide_with_the_first_one_or_come_later(apart, share):
    rows = [(0.5 + k * apart, 0, k, False) for k in range(4)]
    alone = (0.9, 1, 5, False), (0.1, 0, 6, True)  # another piece, and a write, do not count
    shares = on_h200(accesses(*rows, *alone)).soon_shares
    assert share_within(shares, 1 / 64) == pytest.approx(share)
    assert share_within(shares, 1.0) == 1
    assert (
        share_within(shares, 1 / 64) <= share_within(shares, 1 / 40) <= share_within(shares, 1 / 32)
    )


def test_without_repeated_reads_none_is_late():
    found = on_h200(accesses((0.5, 0, 0, False), (0.6, 1, 1, False)))
    assert set(found.soon_shares) == {1.0}


@pytest.mark.parametrize(("sms", "fetches"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3), (14, 4)])
def test_one_fetch_serves_up_to_four_sms_of_a_gpc(sms, fetches):
    # on an H100: 1.00, 1.01, 2.00, 2.07, 3.0, 4.01 (docs/experiments.md)
    found = on_h200(readers(*range(24, 24 + sms), of=132), 1.0)
    assert found.merged_sectors == pytest.approx(fetches + 1)


def test_few_blocks_are_dealt_to_all_gpcs():
    def fetched(blocks, per_sm=1):
        found = on_h200(readers(*range(8, 16), of=blocks), 1.0, blocks_per_sm=per_sm)
        return found.merged_sectors - 1

    assert fetched(132) == fetched(264, 2) == 2  # a run of neighbours
    assert fetched(64) > 2
    assert fetched(17) == pytest.approx(7)  # the last nine of 17 have eight GPCs


def of_small_product():
    """Its number of blocks, and a function from their progress to accesses; all start at 2."""
    variant, problem = LADDER[3], parse_shape("64")
    pieces = pieces_of_c(variant, variant.defaults, problem)
    blocks = variant.geometry(variant.defaults, problem).blocks
    tiling = variant.tiling(variant.defaults)
    return blocks, partial(gemm_accesses, tiling, problem, pieces, np.full(blocks, 2.0))


def test_what_a_block_accesses_after_the_knee_comes_at_another_pace():
    blocks, accessed = of_small_product()
    slow_first = BlockProgress(
        at_first=np.full(blocks, 2.0), knee=np.full(blocks, 0.5), then=np.full(blocks, 0.5)
    )
    found, work = accessed(slow_first), accessed().time - 2
    assert found.time - 2 == pytest.approx(np.where(work < 0.5, 2 * work, 1 + (work - 0.5) / 2))
    assert found.time[found.is_write] == pytest.approx(3.25)


def test_sms_that_copy_ahead_drift_apart():
    """Each block reads 48 MiB that all SMs share: late blocks find less and less of it in L2."""
    sms, pieces, lifetimes = H200.sm_count, 96, 40
    rows = [
        (lifetime + (n + 0.5) / pieces, (lifetime % 2) * pieces + n, lifetime * sms + sm, False)
        for lifetime in range(lifetimes)
        for n in range(pieces)
        for sm in range(0, sms, 4)
    ]
    read = accesses(*rows, size=MIB)
    together = on_h200(read).dram_read_bytes
    assert together == pytest.approx(lifetimes * pieces * MIB, rel=0.01)

    def at(spread):
        slow = np.linspace(1, 1 + spread, sms)
        return on_h200(read, relative_times=slow).dram_read_bytes

    assert at(0.001) < 1.01 * together
    assert at(0.02) > 1.3 * together


def test_only_copies_of_small_blocks_share_lines_in_l1():
    def shared(blocks, per_sm, threads, copies="asynchronous"):
        return shared_in_l1(blocks, H200, per_sm, threads, copies)

    assert shared(264, 2, 128) == 0  # one wave: neighbours run on other SMs
    assert 0 < shared(528, 2, 128) < shared(2640, 2, 128) < 0.25
    assert shared(2640, 1, 128) == shared(2640, 2, 256) == 0
    assert shared(2640, 2, 128, "bulk") == shared(2640, 2, 128, "loads") == 0


def test_stores_are_merged_only_where_a_warp_writes_a_sector_again():
    def sent(distinct, bytes_per_lane):
        return merged_stores(
            100, distinct, 256 * MIB, bytes_per_lane=bytes_per_lane, is_alone=False
        )

    assert sent(100, 4) == 100
    assert 50 < sent(25, 4) < 100
    assert sent(25, 16) == 100
    assert merged_stores(100, 25, 1e6, bytes_per_lane=4, is_alone=False) > sent(25, 4)
    assert merged_stores(100, 25, 256 * MIB, bytes_per_lane=4, is_alone=True) == 100


# What is written.


def test_pieces_that_come_back_from_dram_were_written_there():
    """A buffer is written, read, and read again: what is missing by then has left L2 before."""
    once = passes(64, 1, is_write=True)
    again = [replace(once, time=once.time + n, is_write=~once.is_write) for n in (1, 2)]
    found = on_h200(together(once, *again))
    assert found.dram_read_bytes == pytest.approx(2 * 64 * MIB, rel=0.02)
    assert found.dram_write_bytes == pytest.approx(64 * MIB, rel=0.01)  # once: then it is clean


@pytest.mark.parametrize(
    ("device", "megabytes", "gone", "near"),
    [
        ("h100-sxm", 16, 0.0, 0.02),
        ("h100-sxm", 32, 0.5, 0.25),  # on an H100 half has gone after 31 MiB of these
        ("h100-sxm", 48, 1.0, 0.02),
        ("h200", 28, 0.7 / 8, 0.09),  # on an H200: 0.7 after 28 MiB of reads, 8.0 after 52
        ("h200", 52, 8.0 / 8, 0.07),
    ],
)
def test_dirty_data_leave_when_enough_others_follow(device, megabytes, gone, near):
    """8 MiB that others' reads follow."""
    writes, reads = passes(8, 1, is_write=True), passes(megabytes, 1)
    others = replace(reads, time=reads.time + 1, piece=reads.piece + writes.piece.max() + 1)
    found = traffic(together(writes, others), find_device(device), in_step=0.0).dram_write_bytes
    assert found / (8 * MIB) == pytest.approx(gone, abs=near)


def test_what_is_written_last_stays():
    """Reads before a burst of writes do not push it out."""
    reads, writes = passes(128, 1), passes(8, 1, is_write=True)
    alone = on_h200(writes).dram_write_bytes
    beside = replace(writes, time=writes.time + 1, piece=writes.piece + reads.piece.max() + 1)
    found = on_h200(together(reads, beside)).dram_write_bytes
    assert found - alone == pytest.approx(0, abs=0.01 * MIB)


# The blocks of a product.


def stream_k():
    return next(v for v in LADDER if v.name == "stream-k")


@pytest.mark.parametrize("n", [512, 1024, 2048, 2500])
def test_sums_that_blocks_leave_are_read_once_by_who_stores_the_tile(n):
    variant, problem = stream_k(), Gemm(m=n, n=n, k=n)
    pieces = pieces_of_c(variant, variant.defaults, problem)
    blocks = variant.geometry(variant.defaults, problem).blocks
    begins = starts(pieces.lifetimes(blocks), H200, 2, 128)
    found = gemm_accesses(variant.tiling(variant.defaults), problem, pieces, begins)
    leaves = int((pieces.ends < 1).sum())
    wrote, read = np.split(np.arange(len(found.piece))[-2 * leaves :], 2)
    assert found.is_write[wrote].all()
    assert not found.is_write[read].any()
    assert (found.piece[wrote] == found.piece[read]).all()
    assert (found.block[wrote] != found.block[read]).all()
    assert (found.time[wrote] < found.time[read]).all()
    tile_bytes = 4 * 128 * 128
    assert found.size[wrote].sum() == leaves * tile_bytes
    written = found.size[found.is_write].sum()
    assert written == 4 * n * n + leaves * tile_bytes


# The blocks of a product.


@pytest.mark.parametrize("name", ["naive-uncoalesced", "tiled", "coarsened-1d", "vectorized"])
def test_a_product_accesses_what_its_blocks_own(name):
    (variant,) = (v for v in LADDER if v.name == name)
    problem = parse_shape("300x264x72")
    tiling = variant.tiling(variant.defaults)
    blocks = variant.geometry(variant.defaults, problem).blocks
    pieces = pieces_of_c(variant, variant.defaults, problem)
    found = gemm_accesses(tiling, problem, pieces, np.zeros(blocks))
    sizes = np.zeros(found.piece.max() + 1)
    sizes[found.piece] = found.size
    assert sizes.sum() == pytest.approx(problem.matrix_bytes)  # each element in one piece
    reads = ~found.is_write
    rows_of_blocks, columns_of_blocks = -(-300 // tiling.block_m), -(-264 // tiling.block_n)
    # rows of 72 and 264 floats begin on sectors: 8 floats each
    assert found.sectors[reads].sum() == pytest.approx(
        300 * 72 / 8 * columns_of_blocks + 72 * 264 / 8 * rows_of_blocks
    )
    for block in (0, blocks // 2, blocks - 1):
        ((rows, columns),) = tiles_of_c(variant, variant.defaults, problem, [block])
        mine = found.block == block
        written = found.size[mine & found.is_write].sum()
        assert written == 4 * len(rows) * len(columns)
        assert found.size[mine & reads].sum() == pytest.approx(4 * 72 * (len(rows) + len(columns)))


def test_a_block_that_reads_later_reads_all_its_parts_later_and_ends_with_the_others():
    (variant,) = (v for v in LADDER if v.name == "tiled")
    problem = Gemm(m=32, n=16, k=64)  # two blocks
    pieces = pieces_of_c(variant, variant.defaults, problem)
    late = np.array([0.0, 0.25])
    args = variant.tiling(variant.defaults), problem, pieces, np.array([0.0, 3.0])
    usual, found = gemm_accesses(*args), gemm_accesses(*args, lead=late)
    reads, of_late = ~found.is_write, found.block == 1
    done = usual.time[reads & of_late] - 3
    assert found.time[reads & of_late] == pytest.approx(3 + 0.25 + 0.75 * done)
    assert (found.time == usual.time)[~of_late | found.is_write].all()


# Parts of lines.


def test_dram_transfers_pairs_of_sectors():
    """One sector of each line of 1 MiB of lines is read: 64 bytes of DRAM each, and all alone."""
    read = replace(passes(1, 1), pairs=Pairs(read=2.0, lone_read=1.0))
    whole, found = on_h200(passes(1, 1)), on_h200(read)
    assert found.dram_read_bytes == 2 * whole.dram_read_bytes
    assert found.dram_lone_pairs == found.dram_read_bytes / PAIR_BYTES
    assert (whole.dram_lone_pairs, whole.dram_fill_bytes) == (0, 0)


def test_what_l2_has_evicted_is_read_again_in_the_pairs_of_one_block():
    """All sectors of 128 MiB are read twice, but each block reads one of each pair."""
    own = replace(passes(128, 2), pairs=Pairs(read_again=2.0, lone_again=1.0))
    once, whole, found = on_h200(passes(128, 1)), on_h200(passes(128, 2)), on_h200(own)
    again = whole.dram_read_bytes - once.dram_read_bytes
    assert again > 100 * MIB
    assert found.dram_read_bytes == pytest.approx(once.dram_read_bytes + 2 * again)
    assert found.dram_lone_pairs == pytest.approx(2 * again / PAIR_BYTES)


def test_l2_keeps_room_for_the_whole_lines_of_the_sectors_that_are_accessed():
    """40 MiB are read twice: L2 keeps them, unless they are a quarter of their lines."""
    lone = replace(passes(40, 2), pairs=Pairs(room=4.0))
    kept, evicted = on_h200(passes(40, 2)), on_h200(lone)
    assert kept.dram_read_bytes < 48 * MIB
    assert evicted.dram_read_bytes > 78 * MIB


def test_what_is_written_in_part_stays_until_l2_lacks_room_and_is_filled_then():
    """With a warm L2, of whole sectors more than 28 MiB are written back, of parts of them 56."""

    def moved(mib, stored):
        found = traffic(
            passes(mib, 1, is_write=True),
            H200,
            in_step=0.0,
            l2=L2State.WARM,
            stored_bytes=stored,
        )
        return found.dram_write_bytes / MIB, found.dram_fill_bytes / MIB

    assert moved(40, np.inf) == (pytest.approx(40, rel=0.02), 0)
    assert max(moved(40, 0.0)) < 1
    assert moved(80, 0.0) == (pytest.approx(80, rel=0.02), pytest.approx(80, rel=0.02))


def test_sectors_that_are_written_in_part_are_read_unless_the_launch_has_read_them():
    written = passes(4, 1, is_write=True)
    found, whole = (
        traffic(written, H200, in_step=0.0, stored_bytes=stored) for stored in (0.0, np.inf)
    )
    assert found.dram_fill_bytes == found.dram_read_bytes == 4 * MIB
    assert whole.dram_fill_bytes == whole.dram_read_bytes == 0
    read = replace(written, time=written.time - 10, is_write=~written.is_write)
    both = Accesses(
        **{
            name: np.concatenate([value, vars(written)[name]])
            for name, value in vars(read).items()
            if isinstance(value, np.ndarray)
        }
    )
    found = traffic(both, H200, in_step=0.0, stored_bytes=0.0)
    assert (found.dram_fill_bytes, found.dram_read_bytes) == (0, 4 * MIB)


@pytest.mark.parametrize(("fetched", "merged", "share"), [(8.0, 6.0, 0.75), (0.0, 0.0, 1.0)])
def test_the_merged_share_is_what_l2_sends_of_what_arrives(fetched, merged, share):
    nothing = Traffic(
        fetched_sectors=fetched,
        merged_sectors=merged,
        written_sectors=0.0,
        l2_read_sectors=0.0,
        l2_write_sectors=0.0,
        dram_read_bytes=0.0,
        dram_write_bytes=0.0,
    )
    assert nothing.merged_share == share
