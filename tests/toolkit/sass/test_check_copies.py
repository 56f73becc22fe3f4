"""Order that mbarriers and bulk copies establish, in kernels of a few lines."""

import re
from functools import cache

import numpy as np
import pytest

from tests.cubins import cubin_of
from tests.sampling import exhaustive
from toolkit import simulate
from toolkit.execution.sanitizer import check
from toolkit.machine_code.kernel import Kernel

# Barriers by their address in shared memory; `wait` by parity, as compiled code does.
HEAD = """
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void begin(void* b, int n)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");
}
__device__ void arrive(void* b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(b)) : "memory");
}
__device__ void wait(void* b, unsigned parity)
{
    asm volatile("{ .reg .pred p;"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"
                 "@!p bra again; }" :: "r"(at(b)), "r"(parity) : "memory");
}
__device__ void load(void* to, const void* from, unsigned bytes, void* b)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(at(b)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];"
                 :: "r"(at(to)), "l"(from), "r"(bytes), "r"(at(b)) : "memory");
}
__device__ void store(void* to, const void* from, unsigned bytes)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(to), "r"(at(from)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ void stores_have_read()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
extern "C" __global__ void kernel(float* out, const float* in)
{
    __shared__ __align__(128) float x[64];
    __shared__ __align__(8) unsigned long long a, b;
    const int t = threadIdx.x;
    if (t == 0) begin(&a, A), begin(&b, B);
    BEGUN
"""


# Bodies that are in order, and what they are without the part between the brackets.
ORDERED = {
    "a wait for an arrival": (
        "if (t == 40) x[0] = in[t], arrive(&a); [[wait(&a, 0);]] out[t] = x[0];",
        "WAR",  # the other warp runs first
    ),
    "what is known of others is handed on": (
        "if (t == 0) x[0] = in[t], arrive(&a);"
        "if (t == 32) { [[wait(&a, 0);]] arrive(&b); }"
        "wait(&b, 0); out[t] = x[0];",
        "RAW",
    ),
    "a barrier of the block hands on what one waited for": (
        "if (t == 0) load(x, in, 256, &a);"
        "if (t == 32) wait(&a, 0); [[__syncthreads();]] out[t] = x[t];",
        "RAW",
    ),
    "a warp hands on what a lane waited for": (
        "if (t == 0) load(x, in, 256, &a);"
        "if (t % 32 == 3) wait(&a, 0); [[__syncwarp();]] out[t] = x[t];",
        "RAW",
    ),
    "the wait for a copy": (
        "if (t == 0) load(x, in, 256, &a); [[wait(&a, 0);]] out[t] = x[t];",
        "RAW",
    ),
    "a barrier of the block is no wait for a copy": (
        "if (t == 0) load(x, in, 256, &a); __syncthreads(); [[wait(&a, 0);]] out[t] = x[t];",
        "RAW",
    ),
    "the issuing thread must wait too": (
        "if (t == 0) { load(x, in, 256, &a); [[wait(&a, 0);]] out[t] = x[t]; }",
        "RAW",
    ),
    "a copy comes after the reads of a released stage": (
        "x[t] = t; __syncthreads(); out[t] = x[63 - t]; [[arrive(&a);]]"
        "if (t == 0) { [[wait(&a, 0);]] load(x, in, 256, &b); } wait(&b, 0);",
        "WAR",
    ),
    "a copy comes after the copy before it": (
        "if (t == 0) { load(x, in, 256, &a); [[wait(&a, 0);]] load(x, in, 256, &b); }"
        "wait(&a, 0); wait(&b, 0);",
        "WAW",
    ),
    "writes come after a copy": (
        "if (t == 0) load(x, in, 256, &a); [[wait(&a, 0);]] x[t] = t;",
        "WAW",
    ),
    "a store of many bytes reads what was written before": (
        "x[t] = t; [[__syncthreads();]] if (t == 0) { store(out, x, 256); stores_have_read(); }",
        "WAR",  # of the warp that writes later
    ),
    "what a store still reads is not written": (
        "x[t] = t; __syncthreads(); if (t == 0) { store(out, x, 256); [[stores_have_read();]] }"
        "__syncthreads(); x[t] = 2 * t;",
        "WAR",
    ),
    "others write after a barrier that follows": (
        "x[t] = t; __syncthreads(); if (t == 0) { store(out, x, 256); stores_have_read(); }"
        "[[__syncthreads();]] x[t] = 2 * t;",
        "WAR",
    ),
    "a thread's copies, by their mbarrier": (
        'asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at(x + t)), "l"(in + t));'
        'asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(at(&a)));'
        "[[wait(&a, 0);]] out[t] = x[63 - t];",
        "WAR",  # of the warp that copies later
    ),
}
COUNTS = {  # arrivals where they are not one of each
    "a copy comes after the reads of a released stage": {"a": 64},
    "a thread's copies, by their mbarrier": {"a": 64},
}


# What other tests below are about.
AGAIN = "__syncthreads(); if (t == 0) begin(&a, 1); __syncthreads();"
ONCE = "if (t == 0) load(x, in, 256, &a); wait(&a, 0); out[t] = x[t];"
AHEAD = "const float ahead = *(volatile float*)&x[t];"
FETCHED_AHEAD = """
    float now = 0, next = 0, sum = 0;
    for (int n = 0; n < 4; ++n) {
        sum += now;
        now = next;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(next) : "r"(at(x + 16 * n + t % 16)));
        if (n == 1) out[t] = 1;
    }
    out[t] = sum;
"""
MANY = """
    __shared__ __align__(8) unsigned long long many[80];
    for (int n = t; n < 80; n += 64) begin(many + n, 1);
    __syncthreads();
    for (int n = 0; n < 80; ++n) {
        if (t == 0) load(x, in, 256, many + n);
        wait(many + n, 0);
        __syncthreads();  // a wait for a parity must not miss its phase
        if (t == 0 && n % 2) arrive(many + n);
        if (n % 2) wait(many + n, 1);
        out[t] += x[t];
        __syncthreads();
    }
"""
ANY_SPACE = "float* p = in[0] > 0 ? x : out; p[t] = t; BETWEEN out[t] = p[63 - t];"
USED = "if (t == 40) arrive(&a); if (t < 32) wait(&a, 0);"
OTHERS = {
    "parity": "if (t == 0) { x[0] = in[t]; arrive(&a); arrive(&a); }"
    "if (t == 40) { wait(&a, 1); out[t] = x[0]; }",
    "used": USED,
    "used_at_once": USED,
    "begun_anew": ONCE + AGAIN + ONCE,
    "not_waited_for_anew": ONCE + AGAIN + ONCE.replace("wait(&a, 0);", ""),
    "copied_and_written": "if (t == 0) load(x, in, 256, &a), wait(&a, 0); if (t == 1) x[1] = 1;",
    "two_arrivals": "if (t == 0) load(x, in, 256, &a);" * 2 + "wait(&a, 0);",
    "loaded": AHEAD,
    "loaded_and_used": AHEAD + "out[t] = ahead;",
    "fetched_ahead": FETCHED_AHEAD,
    "half_filled": "if (t < 32) x[t] = 1; __syncthreads();" + FETCHED_AHEAD,
    "many": MANY,
    "any_space": ANY_SPACE.replace("BETWEEN", "__syncthreads();"),
    "any_space_at_once": ANY_SPACE.replace("BETWEEN", ""),
}


def kernel(name, body, *, a=1, b=1, begun="__syncthreads();"):
    """For 64 threads, with barriers for so many arrivals."""
    head = HEAD.partition('extern "C"')[2].replace("BEGUN", begun).replace(" kernel(", f" {name}(")
    begin = head.replace("&a, A", f"&a, {a}").replace("&b, B", f"&b, {b}")
    return f'extern "C"{begin}{body}\n}}\n'


def kernels():
    for number, (name, (body, _)) in enumerate(ORDERED.items()):
        without = re.sub(r"\[\[.*?\]\]", "", body, flags=re.DOTALL)
        counts = COUNTS.get(name, {})
        yield kernel(f"ordered_{number}", re.sub(r"\[\[|\]\]", "", body), **counts)
        yield kernel(f"without_{number}", without, **counts)
    for name, body in OTHERS.items():
        yield kernel(name, body, begun="" if name == "used_at_once" else "__syncthreads();")


@cache
def image():
    """All of them in one source: to compile and disassemble each takes half a second."""
    source = HEAD.partition('extern "C"')[0] + "".join(kernels())
    return cubin_of(source, "ordered_0").image


def findings(name):
    arguments = [np.zeros(64, np.float32), np.ones(64, np.float32)]
    cubin = Kernel.from_image(image(), name)
    return list(check(cubin, grid=1, block=64, arguments=arguments).findings)


def kinds(name):
    return {f"{x.tool} {x.kind}" for x in findings(name)}


def found_in(prefix, name):
    return kinds(f"{prefix}_{list(ORDERED).index(name)}")


@pytest.mark.parametrize("name", ORDERED)
def test_what_is_in_order_is_not_blamed(name):
    assert found_in("ordered", name) == set()


@pytest.mark.parametrize("name", ORDERED)
def test_what_is_not_in_order_is_found(name):
    assert f"racecheck {ORDERED[name][1]}" in found_in("without", name)


def test_a_wait_proves_no_more_than_its_parity_says():
    """The phase before the first is complete from the start, whichever phase ended since."""
    assert kinds("parity") == {"racecheck RAW"}


def test_a_barrier_is_begun_before_others_use_it():
    assert findings("used") == []
    pairs = {tuple(access.what for access in x.accesses) for x in findings("used_at_once")}
    assert ("initialization of an mbarrier", "wait for an mbarrier") in pairs
    assert ("initialization of an mbarrier", "arrival at an mbarrier") in pairs


def test_a_barrier_that_is_begun_anew_starts_with_its_first_phase():
    assert findings("begun_anew") == []
    assert kinds("not_waited_for_anew") == {"racecheck RAW"}


def test_a_value_that_a_copy_put_there_already_is_a_race_too():
    """Of stores of threads it is none; the other lane has not waited for the copy, of ones."""
    assert kinds("copied_and_written") == {"racecheck WAW"}


def test_more_arrivals_than_a_phase_counts_are_a_finding():
    assert "synccheck invalid arrivals" in kinds("two_arrivals")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("loaded", set()), ("loaded_and_used", {"initcheck uninitialized read"})],
)
def test_what_was_never_written_may_be_loaded_and_not_used(name, expected):
    assert kinds(name) == expected


def test_a_copy_of_what_was_never_written_is_no_use_of_it():
    """A loop that fetches ahead moves the value on, and ends before it is used."""
    assert kinds("fetched_ahead") == {"initcheck uninitialized read"}
    assert kinds("half_filled") == set()  # the last two turns load what nobody wrote


def test_a_block_with_very_many_barriers_is_not_blamed():
    """All barriers beyond the 63rd are taken as one, in either parity."""
    assert findings("many") == []


def test_a_race_through_addresses_of_any_space_is_found():
    assert kinds("any_space") == set()
    races = {"racecheck WAR", "racecheck RAW", "initcheck uninitialized read"}
    assert kinds("any_space_at_once") == races


COUNTED = """
#define AT(x) (unsigned)__cvta_generic_to_shared(x)
__global__ void turned(unsigned *out, const unsigned *in, int rounds)
{
    __shared__ unsigned long long bar;
    __shared__ unsigned words[128];
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 128;" :: "r"(AT(&bar)));
    __syncthreads();
    unsigned sum = 0;
    for (int round = 0; round < rounds; round++) {
        PUT;
        unsigned long long state;
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];"
            : "=l"(state) : "r"(AT(&bar)) : "memory");
        if (WAITS) asm volatile("{ .reg .pred p;"
            "again: mbarrier.test_wait.shared.b64 p, [%0], %1;"
            "@!p bra again; }" :: "r"(AT(&bar)), "l"(state) : "memory");
        sum += words[threadIdx.x ^ 37];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
"""
STORED = "words[threadIdx.x] = in[threadIdx.x] + round"
COPIED = (
    'asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"'
    ' "cp.async.mbarrier.arrive.shared.b64 [%2];"'
    ' :: "r"(AT(words + threadIdx.x)), "l"(in + threadIdx.x), "r"(AT(&bar)) : "memory")'
)


@pytest.mark.parametrize("arch", ["sm_80", exhaustive("sm_86"), exhaustive("sm_89"), "sm_90"])
@pytest.mark.parametrize("put", [STORED, COPIED])
@pytest.mark.parametrize("waits", [True, False])
def test_barriers_that_count_by_atomics_order_what_they_order_later(arch, put, waits):
    """sm_80 to sm_89 wait by loads; sm_90 has instructions for it."""
    kernel = cubin_of(COUNTED, "turned", arch=arch, defines={"PUT": put, "WAITS": int(waits)})
    given = np.arange(128, dtype=np.uint32)
    arguments = [np.zeros(128, np.uint32), given, np.int32(3)]
    found = check(kernel, grid=1, block=128, arguments=arguments)
    assert ("racecheck" in {one.tool for one in found.findings}) == (not waits)
    if waits:
        assert not found.findings
        launch = simulate(kernel, grid=1, block=128, arguments=arguments, predict=False)
        more = 3 if put == STORED else 0
        np.testing.assert_array_equal(launch.outputs[0], 3 * (given ^ 37) + more)
