"""Texture fetches and surface accesses beside an exact reference, on four architectures' code."""

import json
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from analysis.errors import InputError, LaunchError, UnsupportedError
from tests.sampling import sampled
from tests.toolkit.sass.texture_reference import fetch, index
from toolkit import Surface, Texture, simulate

F32 = np.float32
COUNT = 128
ARCHITECTURES = ["sm_75", "sm_86", "sm_90", "sm_120"]
OLDEST_AND_NEWEST = ["sm_75", "sm_120"]
HEAD = """extern "C" __global__ void k(unsigned long long t, VALUE *y, const float *a,
    const float *b, const float *c) { int i = blockIdx.x * blockDim.x + threadIdx.x; """
FETCHES = {
    1: "y[i] = tex1D<VALUE>(t, a[i]);",
    2: "y[i] = tex2D<VALUE>(t, a[i], b[i]);",
    3: "y[i] = tex3D<VALUE>(t, a[i], b[i], c[i]);",
}
SHAPES = {1: (37,), 2: (11, 16), 3: (5, 7, 12)}
# type of an array, channels, how it is read, what a fetch returns
KINDS = [
    ("float32", 1, "element", "float"),
    ("float32", 4, "element", "float4"),
    ("float16", 2, "element", "float2"),
    ("uint8", 4, "element", "uint4"),
    ("int8", 1, "element", "int"),
    ("int16", 2, "element", "int2"),
    ("uint32", 1, "element", "unsigned"),
    ("int32", 4, "element", "int4"),
    ("uint8", 4, "float", "float4"),
    ("int8", 2, "float", "float2"),
    ("uint16", 1, "float", "float"),
    ("int16", 4, "float", "float4"),
]


def texels(rng, shape, dtype, channels):
    shape = shape if channels == 1 else (*shape, channels)
    if np.dtype(dtype).kind == "f":
        return rng.uniform(-1, 1, shape).astype(dtype)
    bounds = np.iinfo(dtype)
    return rng.integers(bounds.min, bounds.max, shape, dtype=dtype, endpoint=True)


def coordinates(rng, n):
    """Inside, outside, at the edges of texels and beside them, and what is no place."""
    edges = rng.integers(-2 * n, 3 * n, COUNT).astype(F32)
    beside = edges + rng.choice([-1, 0, 1], COUNT) * F32(2) ** -rng.integers(1, 12, COUNT)
    inside = rng.uniform(0, n, COUNT)
    odd = rng.choice([np.nan, np.inf, -np.inf, -0.0, 1e30, -1e30], COUNT)
    kind = rng.integers(0, 20, COUNT)
    return np.select([kind < 9, kind < 19], [inside, beside], odd).astype(F32)


def launched(body, arguments, value="float", arch="sm_90"):
    source = HEAD.replace("VALUE", value) + body.replace("VALUE", value) + "\n}"
    return simulate(
        source, grid=COUNT // 32, block=32, arguments=arguments, arch=arch, predict=False
    )


def fetched(texture, places, body, value, arch="sm_90"):
    """Results [COUNT, channels] of a fetch at (x, y, z)."""
    channels = int(value[-1]) if value[-1].isdigit() else 1
    kind = {"f": F32, "u": np.uint32}.get(value[0], np.int32)
    three = [*places, *[np.zeros(COUNT, F32)] * (3 - len(places))]
    arguments = [texture, np.zeros((COUNT, channels), kind), *(x.copy() for x in three)]
    return launched(body, arguments, value, arch).outputs[1]


CASES = [
    (axes, kind, filter, mode, normalized)
    for axes in SHAPES
    for kind in KINDS
    for filter in ("point", "linear")
    for mode in ("clamp", "border", "wrap", "mirror")
    for normalized in (False, True)
    if (filter == "point" or kind[2] == "float" or kind[0][0] == "f")
    and (normalized or mode in ("clamp", "border"))
]


@pytest.mark.parametrize(
    ("axes", "kind", "filter", "mode", "normalized"),
    sampled(CASES, lambda case: (case[0], *case[2:4])),
)
def test_fetches_return_what_the_guide_says(axes, kind, filter, mode, normalized, request):
    dtype, channels, read, value = kind
    rng = np.random.default_rng(crc32(request.node.name.encode()))
    array = texels(rng, SHAPES[axes], dtype, channels)
    places = [coordinates(rng, n) for n in SHAPES[axes][::-1]]
    if normalized:
        places = [(x / F32(n)).astype(F32) for x, n in zip(places, SHAPES[axes][::-1], strict=True)]
    texture = Texture(
        array,
        filter=filter,
        address=mode,
        normalized=normalized,
        read=read,
        channels=channels,
        memory=False,
    )
    arch = ARCHITECTURES[int(rng.integers(4))]
    found = fetched(texture, places, FETCHES[axes], value, arch)
    whole = array.reshape(*SHAPES[axes], channels)
    for lane in range(COUNT):
        expected = fetch(
            whole,
            [x[lane] for x in places],
            filter=filter,
            modes=[mode] * 3,
            normalized=normalized,
            read=read,
        )
        assert found[lane].tolist() == expected


RECORDED = json.loads((Path(__file__).parent / "recorded" / "texture_filters.json").read_text())


@pytest.mark.parametrize(
    "case", RECORDED["cases"], ids=lambda x: f"{x['axes']}D {x['type']} {x['content']}"
)
def test_linear_filters_return_the_bits_of_silicon(case):
    """Each fetch is in a group of its own of two texels along each axis, side by side."""
    axes = case["axes"]
    words = {"float16": np.uint16, "float32": np.uint32}.get(case["type"], np.int8)
    groups = np.array(case["texels"], words).reshape(COUNT, *[2] * axes)
    array = np.moveaxis(groups, 0, -2).reshape(*[2] * (axes - 1), 2 * COUNT).view(case["type"])
    weights = np.array(case["weights"]).T
    places = [F32(0.5) + weight.astype(F32) / 256 for weight in weights]
    places[0] += 2 * np.arange(COUNT, dtype=F32)
    read = "float" if case["type"] == "int8" else "element"
    texture = Texture(array, filter="linear", read=read, memory=False)
    found = fetched(texture, places, FETCHES[axes], "float")[:, 0]
    if case["type"] == "int8":
        assert np.rint(found.astype(float) * 32767).tolist() == case["results"]
    else:
        assert found.view(np.uint32).tolist() == case["results"]


def test_weights_have_eight_bits_of_fraction():
    """Half way between two steps of 1/256 the weight is the next one."""
    ramp = np.array([0, 1], F32)
    x = (0.5 + (np.arange(COUNT) + 0.5) / 256).astype(F32)
    texture = Texture(ramp, filter="linear")
    found = fetched(texture, [x], FETCHES[1], "float")[:, 0]
    assert (found * 256).tolist() == [k + 1 for k in range(COUNT)]


def test_fetch_of_linear_memory_is_zero_outside():
    rng = np.random.default_rng(1)
    array = texels(rng, (50,), "int16", 2)
    x = rng.integers(-20, 80, COUNT).astype(F32)
    found = fetched(
        Texture(array, channels=2), [x], "y[i] = tex1Dfetch<VALUE>(t, int(a[i]));", "int2"
    )
    expected = [array[int(k)].tolist() if 0 <= k < 50 else [0, 0] for k in x]
    assert found.tolist() == expected


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("filter", ["point", "linear"])
def test_layers_are_clamped_and_not_blended(axes, filter):
    rng = np.random.default_rng(axes)
    shape = SHAPES[axes]
    array = texels(rng, (3, *shape), "float32", 1)
    places = [coordinates(rng, n) for n in shape[::-1]]
    layer = rng.integers(0, 5, COUNT).astype(F32)
    three = [places[0], places[-1], layer]
    call = {
        1: "tex1DLayered<VALUE>(t, a[i], int(c[i]))",
        2: "tex2DLayered<VALUE>(t, a[i], b[i], int(c[i]))",
    }
    texture = Texture(array, filter=filter, address="clamp", layered=True)
    found = fetched(texture, three, f"y[i] = {call[axes]};", "float")[:, 0]
    for lane in range(COUNT):
        of_layer = array[min(int(layer[lane]), 2)][..., np.newaxis]
        at = [x[lane] for x in places]
        (expected,) = fetch(
            of_layer, at, filter=filter, modes=["clamp"] * 2, normalized=False, read="element"
        )
        assert found[lane] == expected


@pytest.mark.parametrize("component", range(4))
def test_gather_takes_one_channel_of_four_texels(component):
    rng = np.random.default_rng(component)
    array = texels(rng, (9, 14), "float32", 4)
    x, y = rng.uniform(-1, 15, COUNT).astype(F32), rng.uniform(-1, 10, COUNT).astype(F32)
    body = f"y[i] = tex2Dgather<VALUE>(t, a[i], b[i], {component});"
    found = fetched(Texture(array, channels=4), [x, y], body, "float4")

    def along(at, n):
        first = int(np.floor(np.floor(np.float64(at) * 256 + 0.5) / 256 - 0.5))
        return index(first, n, "clamp"), index(first + 1, n, "clamp")

    for lane in range(COUNT):
        (i0, i1), (j0, j1) = along(x[lane], 14), along(y[lane], 9)
        corners = [(j1, i0), (j1, i1), (j0, i1), (j0, i0)]
        assert found[lane].tolist() == [array[j, i, component] for j, i in corners]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_each_lane_may_name_another_texture(arch):
    head = 'extern "C" __global__ void k(cudaTextureObject_t a, cudaTextureObject_t b, float *y)'
    fetch_3d = "float v = tex3D<float>(i % 3 ? a : b, i, 0, 0);"
    fetch_layer = "v += tex2DLayered<float>(i % 5 ? a : b, 0, 0, 0);"
    only_3d = f"{head} {{ int i = threadIdx.x; {fetch_3d} y[i] = v; }}"
    source = f"{head} {{ int i = threadIdx.x; {fetch_3d} {fetch_layer} y[i] = v; }}"
    a, b = (
        np.arange(32, dtype=F32).reshape(1, 1, 32),
        100 + np.arange(32, dtype=F32).reshape(1, 1, 32),
    )
    arguments = [Texture(a), Texture(b), np.zeros(32, F32)]
    found = simulate(only_3d, grid=1, block=32, arguments=arguments, arch=arch, predict=False)
    assert found.outputs[2].tolist() == [(a if i % 3 else b)[0, 0, i] for i in range(32)]
    with pytest.raises(
        LaunchError, match="tex2DLayered names argument 1, a 3D texture: add `layered`"
    ):
        simulate(source, grid=1, block=32, arguments=arguments, arch=arch, predict=False)


@pytest.mark.parametrize(
    "call",
    [
        "tex2DLod<float>(t, a[i], b[i], 2.0f)",
        "tex2DGrad<float>(t, a[i], b[i], make_float2(1, 2), make_float2(3, 4))",
    ],
)
@pytest.mark.parametrize("arch", OLDEST_AND_NEWEST)
def test_there_is_one_level(call, arch):
    rng = np.random.default_rng(3)
    array = texels(rng, (11, 16), "float32", 1)
    places = [coordinates(rng, 16), coordinates(rng, 11)]
    plain = fetched(Texture(array, filter="linear"), places, FETCHES[2], "float", arch)
    assert np.array_equal(
        fetched(Texture(array, filter="linear"), places, f"y[i] = {call};", "float", arch), plain
    )


@pytest.mark.parametrize("arch", OLDEST_AND_NEWEST)
def test_sizes_of_an_object(arch):
    source = """extern "C" __global__ void k(cudaTextureObject_t t, int *y) {
        asm("txq.width.b32 %0, [%1];" : "=r"(y[0]) : "l"(t));
        asm("txq.height.b32 %0, [%1];" : "=r"(y[1]) : "l"(t)); }"""
    arguments = [Texture(np.zeros((5, 9), F32)), np.zeros(2, np.int32)]
    found = simulate(source, grid=1, block=1, arguments=arguments, arch=arch, predict=False)
    assert found.outputs[1].tolist() == [9, 5]


SURFACE = """extern "C" __global__ void k(cudaSurfaceObject_t s, TYPE *y, const int *at, int n) {
    for (int i = 0; i < n; i++) { BODY } }"""


def on_surface(body, surface, data, places, arch="sm_90", kind="unsigned"):
    source = SURFACE.replace("BODY", body).replace("TYPE", kind)
    arguments = [surface, data, places.astype(np.int32), np.int32(len(places))]
    return simulate(source, grid=1, block=1, arguments=arguments, arch=arch, predict=False)


@pytest.mark.parametrize(
    ("mode", "arch"),
    [("Zero", "sm_75"), ("Clamp", "sm_86"), ("Zero", "sm_90"), ("Clamp", "sm_120")],
)
def test_surfaces_beyond_their_edges(mode, arch):
    """[height, width] of 4-byte texels: x is in bytes; a read there is 0, or that of the edge."""
    rng = np.random.default_rng(5)
    array = texels(rng, (6, 10), "uint32", 1)
    places = np.stack([4 * rng.integers(-4, 14, 64), rng.integers(-4, 10, 64)], axis=1)
    read = f"y[i] = surf2Dread<unsigned>(s, at[2 * i], at[2 * i + 1], cudaBoundaryMode{mode});"
    found = on_surface(read, Surface(array), np.zeros(64, np.uint32), places, arch).outputs
    write = f"surf2Dwrite(y[i], s, at[2 * i], at[2 * i + 1], cudaBoundaryMode{mode});"
    data = rng.integers(0, 2**32, 64, dtype=np.uint32)
    written = on_surface(write, Surface(array), data, places, arch).outputs[0]
    after = array.copy()
    for k, (x, y) in enumerate(places):
        inside = 0 <= x < 40 and 0 <= y < 6
        at = (y, x // 4) if inside else (min(max(y, 0), 5), min(max(x // 4, 0), 9))
        assert found[1][k] == (array[at] if inside or mode == "Clamp" else 0)
        if inside or mode == "Clamp":
            after[at] = data[k]
    assert np.array_equal(written, after)


@pytest.mark.parametrize("arch", OLDEST_AND_NEWEST)
def test_surface_types_and_shapes(arch):
    body = """uchar4 a = surf3Dread<uchar4>(s, at[i] * 4, 1, 1);
        a.y += 1;
        surf3Dwrite(a, s, at[i] * 4, 0, 1);
        short2 b = surf2DLayeredread<short2>(l, at[i] * 4, 0, 1);
        b.x -= 3;
        surf2DLayeredwrite(b, l, at[i] * 4, 1, 0);
        uint2 c = surf1Dread<uint2>(m, at[i] * 8);
        c.x += c.y;
        surf1Dwrite(c, m, at[i] * 8);"""
    handles = "s, cudaSurfaceObject_t l, cudaSurfaceObject_t m"
    source = SURFACE.replace("s, TYPE *y", handles).replace("BODY", body)
    rng = np.random.default_rng(6)
    a = texels(rng, (2, 2, 8), "uint8", 4)
    b = texels(rng, (2, 2, 8), "int16", 2)
    c = texels(rng, (8,), "uint32", 2)
    arguments = [
        Surface(a, channels=4),
        Surface(b, channels=2, layered=True),
        Surface(c, channels=2),
    ]
    arguments += [np.arange(8, dtype=np.int32), np.int32(8)]
    found = simulate(source, grid=1, block=1, arguments=arguments, arch=arch, predict=False).outputs
    expected = a.copy(), b.copy(), c.copy()
    expected[0][1, 0] = a[1, 1] + np.array([0, 1, 0, 0], np.uint8)
    expected[1][0, 1] = b[1, 0] - np.array([3, 0], np.int16)
    expected[2][:, 0] += c[:, 1]
    assert all(map(np.array_equal, found, expected))


def test_reductions_add_up_over_lanes():
    source = """extern "C" __global__ void k(cudaSurfaceObject_t s) {
        int i = threadIdx.x, column = i % 4, at = 4 * column;
        asm volatile("sured.b.add.2d.u32.trap [%0, {%1, 1}], %2;" :: "l"(s), "r"(at), "r"(i));
        asm volatile("sured.b.max.2d.s32.clamp [%0, {%1, -1}], %2;" :: "l"(s), "r"(at), "r"(i));
    }"""
    arguments = [Surface(np.zeros((2, 4), np.int32))]
    found = simulate(
        source, grid=2, block=32, arguments=arguments, arch="sm_90", predict=False
    ).outputs[0]
    assert found[1].tolist() == [2 * sum(range(k, 32, 4)) for k in range(4)]
    assert found[0].tolist() == [28, 29, 30, 31]


def test_a_surface_traps_out_of_bounds_with_its_line_and_thread():
    with pytest.raises(LaunchError) as caught:
        on_surface(
            "surf2Dwrite(y[i], s, at[i], 3);",
            Surface(np.zeros((4, 8), np.uint32)),
            np.zeros(2, np.uint32),
            np.array([28, 32]),
        )
    assert str(caught.value).startswith(
        "k: surface write of 4 bytes out of bounds at byte 32, y = 3: argument 0, a 2D surface, "
        "has 32 bytes x 4 (x of a surface is in bytes); block (0, 0, 0), thread (0, 0, 0), "
        "kernel.cu, line 2: SUST"
    )
    with pytest.raises(
        LaunchError, match="misaligned surface write of 4 bytes at byte 2 of a row of argument 0"
    ):
        on_surface(
            "surf2Dwrite(y[i], s, at[i], 3);",
            Surface(np.zeros((4, 8), np.uint32)),
            np.zeros(2, np.uint32),
            np.array([2]),
        )


@pytest.mark.parametrize(
    ("call", "texture", "message"),
    [
        (
            FETCHES[3],
            Texture(np.zeros((2, 2), F32)),
            "tex3D names argument 0, a 2D texture: give an array of 3 axes",
        ),
        (FETCHES[2], Texture(np.zeros(4, F32)), "a texture of linear memory: tex1D needs an array"),
        (
            "y[i] = tex1Dfetch<VALUE>(t, i);",
            Texture(np.zeros(4, F32), memory=False),
            "leave out filter, address mode",
        ),
        (FETCHES[2], Surface(np.zeros((2, 2), F32)), r"a 2D surface: give a texture \(tex:\)"),
        (
            FETCHES[2],
            np.uint64(5),
            r"no texture has the handle 0x5: pass a toolkit.Texture\(array\), or tex:",
        ),
    ],
)
def test_an_object_of_another_kind_is_named(call, texture, message):
    with pytest.raises(LaunchError, match=message):
        fetched(texture, [], call, "float")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "y[i] = texCubemap<VALUE>(t, a[i], b[i], c[i]);",
            "kernel.cu, line 2.*cubemaps are not simulated",
        ),
        (
            'asm volatile("sured.p.max.2d.b32.trap [%0, {%1, %1}], %1;" :: "l"(t), "r"(i));',
            "sured.p",
        ),
        ('asm volatile("sust.p.2d.b32.trap [%0, {%1, %1}], {%1};" :: "l"(t), "r"(i));', "sust.p"),
    ],
)
def test_what_is_not_simulated_is_refused_by_name(body, message):
    with pytest.raises(UnsupportedError, match=message):
        fetched(Texture(np.zeros((2, 2), F32)), [], body, "float")


def test_texture_and_surface_of_one_array_share_it():
    source = """extern "C" __global__ void k(cudaTextureObject_t t, cudaSurfaceObject_t s) {
        surf2Dwrite(tex2D<float>(t, threadIdx.x, 1) + 1, s, threadIdx.x * 4, 0); }"""
    array = np.arange(8, dtype=F32).reshape(2, 4)
    found = simulate(
        source,
        grid=1,
        block=4,
        arguments=[Texture(array), Surface(array)],
        arch="sm_90",
        predict=False,
    )
    assert len(found.outputs) == 1
    assert found.outputs[0].tolist() == [[5, 6, 7, 8], [4, 5, 6, 7]]


def test_a_buffer_is_no_cuda_array():
    source = """extern "C" __global__ void k(cudaTextureObject_t t, float *y) {
        y[0] = tex2D<float>(t, 0, 0); }"""
    array = np.zeros((2, 4), F32)
    with pytest.raises(
        InputError, match="its array is a buffer as well, and a CUDA array is other memory"
    ):
        simulate(source, grid=1, block=1, arguments=[Texture(array), array], predict=False)


def test_time_and_traffic_hold_the_texels():
    """A row of a 2D texture per warp: as many sectors of L2 as a copy by loads."""
    source = """extern "C" __global__ void k(cudaTextureObject_t t, float *y) {
        int i = threadIdx.x, j = blockIdx.x; y[j * 256 + i] = tex2D<float>(t, i, j); }"""
    plain = """extern "C" __global__ void k(const float *x, float *y) {
        int i = threadIdx.x, j = blockIdx.x; y[j * 256 + i] = x[j * 256 + i]; }"""
    array, y = np.ones((512, 256), F32), np.zeros((512, 256), F32)
    by_texture = simulate(source, grid=512, block=256, arguments=[Texture(array), y], device="h200")
    by_loads = simulate(plain, grid=512, block=256, arguments=[array, y], device="h200")
    name = "lts__t_sectors_op_read.sum"
    assert by_texture.counters[name] == by_loads.counters[name]
    assert by_texture.predicted.time_s == pytest.approx(by_loads.predicted.time_s, rel=0.3)
    (note,) = by_texture.notes
    assert note.startswith("4,096 texture requests of warps: the counters of L1 leave them out")
