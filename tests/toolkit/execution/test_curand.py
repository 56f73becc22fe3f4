"""Random numbers of curand's device API beside generators written from their papers.

Philox4x32-10: Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (2011).
XORWOW: Marsaglia, "Xorshift RNGs" (2003), whose subsequences begin 2^67 steps apart.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from toolkit import simulate
from toolkit.machine_code.include_paths import include_options

HEADER = "#include <curand_kernel.h>\n"
FOLDERS = [Path(option.partition("=")[2]) for option in include_options(HEADER, None)]
INSTALLED = any((folder / "curand_kernel.h").exists() for folder in FOLDERS)
pytestmark = pytest.mark.skipif(not INSTALLED, reason="needs the wheel nvidia-curand")
SEED, THREADS, DRAWS = 0x123456789ABCDEF, 32, 9
WORD = (1 << 32) - 1
SOURCE = (
    HEADER
    + """
extern "C" __global__ void k(unsigned long long seed, unsigned *y, float *u) {
    STATE s;
    curand_init(seed, threadIdx.x, 0, &s);
    for (int k = 0; k < 9; k++) y[9 * threadIdx.x + k] = curand(&s);
    u[threadIdx.x] = curand_uniform(&s);
}"""
)


def drawn(state):
    """Words [thread, draw] of each thread's subsequence, and a uniform number after them."""
    arguments = [
        np.uint64(SEED),
        np.zeros((THREADS, DRAWS), np.uint32),
        np.zeros(THREADS, np.float32),
    ]
    source = SOURCE.replace("STATE", state)
    return simulate(source, grid=1, block=THREADS, arguments=arguments, predict=False).outputs


def philox(counter, key):
    """The four words of one counter."""
    x, k = list(counter), list(key)
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * x[0], 1 << 32)
        high1, low1 = divmod(0xCD9E8D57 * x[2], 1 << 32)
        x = [high1 ^ x[1] ^ k[0], low1, high0 ^ x[3] ^ k[1], low0]
        k = [(k[0] + 0x9E3779B9) & WORD, (k[1] + 0xBB67AE85) & WORD]
    return x


def uniform(word):
    """From 0, excluded, to 1, as float32 rounds it."""
    return np.float32(word) * np.float32(2**-32) + np.float32(2**-33)


@pytest.mark.exhaustive  # cuRAND takes 2 s to compile
def test_philox():
    words, uniforms = drawn("curandStatePhilox4_32_10_t")
    key = SEED & WORD, SEED >> 32
    for thread in range(THREADS):
        expected = [w for n in range(3) for w in philox((n, 0, thread, 0), key)]
        assert words[thread].tolist() == expected[:DRAWS]
        assert uniforms[thread] == uniform(expected[DRAWS])


def xorwow(v):
    """One step of the five words of a state."""
    t = v[0] ^ v[0] >> 2
    return [*v[1:], (v[4] ^ v[4] << 4 & WORD) ^ (t ^ t << 1 & WORD)]


@cache
def steps(doublings):
    """Matrix of 2^doublings steps, by squares of that of one step."""
    units = [[(1 << b) * (w == k) for k in range(5)] for w in range(5) for b in range(32)]
    columns = [xorwow(unit) for unit in units]
    matrix = np.array([bits(column) for column in columns], np.uint8)
    for _ in range(doublings):
        matrix = (matrix.astype(np.int64) @ matrix % 2).astype(np.uint8)
    return matrix.astype(np.int64)


def skipped(state, doublings):
    """The five words of a state after 2^doublings steps."""
    return words(bits(state) @ steps(doublings) % 2)


def bits(v):
    return np.array([x >> b & 1 for x in v for b in range(32)], np.uint8)


def words(row):
    return [sum(int(row[32 * w + b]) << b for b in range(32)) for w in range(5)]


@pytest.mark.exhaustive  # another generator than Philox's
def test_xorwow():
    found, uniforms = drawn("curandStateXORWOW_t")
    s0, s1 = SEED & WORD ^ 0xAAD26B49, SEED >> 32 ^ 0xF7DCEFDD
    t0, t1 = 1099087573 * s0 & WORD, 2591861531 * s1 & WORD
    v = [123456789 + t0, 362436069 ^ t0, 521288629 + t1, 88675123 ^ t1, 5783321 + t0]
    v, d = [x & WORD for x in v], (6615241 + t1 + t0) & WORD
    for thread in range(THREADS):
        state, counter, expected = v, d, []
        for _ in range(DRAWS + 1):  # 2^67 steps add a multiple of 2^32 to the counter
            state, counter = xorwow(state), (counter + 362437) & WORD
            expected.append((state[4] + counter) & WORD)
        assert found[thread].tolist() == expected[:DRAWS]
        assert uniforms[thread] == uniform(expected[DRAWS])
        v = skipped(v, 67)
