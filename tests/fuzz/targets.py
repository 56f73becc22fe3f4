"""What takes input from anywhere, as functions of bytes: they raise only where there is a bug.

`test_hostile_input.py` gives them what hypothesis thinks of, `fuzz.py` as much as is asked for.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from typer.testing import CliRunner

from analysis.errors import ToolkitError
from analysis.launch_comparison import compare_launches
from reports.comparison import launch_sentences, launch_tables
from toolkit.arguments import parse_arguments
from toolkit.call import parse_call
from toolkit.cli import app, damage_of
from toolkit.compile import Cubin, compile_cubin
from toolkit.cubin import warp_operations
from toolkit.experiment import profile
from toolkit.sass.decode import OperandError, decode, parse_guard, parse_operands
from toolkit.sass.disassemble import disassemble
from toolkit.store import dumps, parse, parse_launch

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>"
HOSTILE: tuple[Any, ...] = (
    MARKUP,
    "{{ 7 * 7 }}{% raw %}",
    "</script></style>]]>-->",
    "\x00\x01\x1b[31m\x7f\u202e\ud800",
    "a" * 10_000,
    "[bold red]rich[/]",
    "",
    -1,
    0,
    2**63,
    -(2**200),
    10**400,
    1e308,
    -1e-308,
    float("nan"),
    float("inf"),
    None,
    True,
    [],
    {},
    [[[[[[[[]]]]]]]],
    {"a": {"b": {"c": {}}}},
)
DEEP = "[" * 5000 + "]" * 5000
SOURCE = """extern "C" __global__ void scale(float *x, int n) {
    __shared__ float s[32];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < n) x[threadIdx.x] = 2.0f * s[threadIdx.x ^ 1];
}"""


@cache
def document() -> dict[str, Any]:
    """A profile as it is stored."""
    made = profile([64], ["tiled", "vectorized", "cpu"], executor="simulate", device="t4", seed=1)
    found: dict[str, Any] = json.loads(dumps(made))
    return found


@cache
def launch_document() -> dict[str, Any]:
    """A launch as `simulate --json` prints it, a prediction included."""
    asked = ("-g", "1", "-b", "32", "-a", "f32[32]", "-a", "i32=32", "-d", "t4", "--json")
    with TemporaryDirectory() as folder:
        source = Path(folder) / "scale.cu"
        source.write_text(SOURCE, encoding="utf-8")
        made = CliRunner().invoke(app, ["simulate", str(source), *asked])
    found: dict[str, Any] = json.loads(made.stdout)
    return found


@cache
def image() -> bytes:
    """The machine code of a small kernel."""
    return compile_cubin(SOURCE, name="scale.cu", kernel="scale", arch="sm_90").image


@cache
def listing() -> str:
    """What nvdisasm prints of it."""
    return disassemble(image())


class Choices:
    """Decisions drawn from bytes; zeros when they have run out."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, below: int) -> int:
        """0 to `below` - 1."""
        (value,) = struct.unpack("<I", self._data[self._at : self._at + 4].ljust(4, b"\0"))
        self._at += 4
        return int(value % max(below, 1))

    def text(self) -> str:
        """What is left."""
        return self._data[self._at :].decode(errors="surrogateescape")


def stored_text(data: bytes) -> None:
    """The reader of profile.json on any text."""
    _read(data.decode(errors="replace"))


def stored_document(data: bytes) -> None:
    """The reader, and all that is made of what it lets through, on a damaged profile."""
    text = _damaged(document(), data)
    if text is not None:
        _read(text)


def stored_launch(data: bytes) -> None:
    """The same for what `simulate --json` printed, and a comparison with what it was before."""
    text = _damaged(launch_document(), data)
    if text is None:
        return
    try:
        found = parse_launch(text, "launch.json")
        before = parse_launch(json.dumps(launch_document()), "before.json")
        compared = compare_launches(before, found)
        launch_sentences(compared)
        launch_tables(compared)
    except ToolkitError as error:
        _check_line(error)


def _damaged(whole: dict[str, Any], data: bytes) -> str | None:
    """A document with hostile places, as text if it has one."""
    choices = Choices(data)
    damaged = json.loads(json.dumps(whole))
    for _ in range(1 + choices.number(3)):
        _damage(damaged, choices)
    try:
        text = json.dumps(damaged)
    except ValueError:  # Python has no text for such an integer
        return None
    if choices.number(20) == 0:
        text = text.replace("[", DEEP[: choices.number(len(DEEP))], 1)
    return text


def _read(text: str) -> None:
    try:
        found = parse(text, "profile.json")
    except ToolkitError as error:
        _check_line(error)
        return
    dumps(found)


def _damage(value: Any, choices: Choices) -> None:
    """Put something hostile into one place of a document."""
    places = list(_places(value))
    holder, key = places[choices.number(len(places))]
    what = choices.number(len(HOSTILE) + 2)
    if what < len(HOSTILE):
        holder[key] = HOSTILE[what]
    elif what == len(HOSTILE):
        del holder[key]
    else:
        holder[key] = choices.text()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def report(data: bytes) -> None:
    """A page made of a profile whose texts are hostile: they stand in it as text."""
    from reports import render

    choices = Choices(data)
    damaged = json.loads(json.dumps(document()))
    texts = [(h, k) for h, k in _places(damaged) if isinstance(h[k], str)]
    for _ in range(1 + choices.number(8)):
        holder, key = texts[choices.number(len(texts))]
        strings = [x for x in HOSTILE if isinstance(x, str)]
        which = choices.number(len(strings) + 1)
        holder[key] = strings[which] if which < len(strings) else choices.text()
    try:
        found = parse(json.dumps(damaged), "profile.json")
        with damage_of(Path("profile.json")):
            page = render(found)
    except ToolkitError as error:
        _check_line(error)
        return
    assert MARKUP not in page
    assert "onerror=alert(1)>" not in re.sub(r"\\u003[ce]|&[lg]t;", "", page)


def disassembly(data: bytes) -> None:
    """The decoder on what nvdisasm never prints: in one of its texts, or anywhere."""
    choices = Choices(data)
    damaged = json.loads(listing())
    places = [(h, k) for h, k in _places(damaged) if isinstance(h[k], str)]
    for _ in range(1 + choices.number(3)):
        holder, key = places[choices.number(len(places))]
        at, length = choices.number(len(holder[key]) + 1), choices.number(8)
        holder[key] = holder[key][:at] + choices.text()[:80] + holder[key][at + length :]
    text = json.dumps(damaged)
    if choices.number(8) == 0:
        at = choices.number(len(text))
        text = text[:at] + choices.text() + text[at + 1 :]
    try:
        decode(text)
    except ToolkitError as error:
        _check_line(error)


def operands(data: bytes) -> None:
    """Operands and guards of any text."""
    text = data.decode(errors="replace")
    for function in (parse_operands, parse_guard):
        try:
            function(text)
        except OperandError:
            continue


def machine_code(data: bytes) -> None:
    """The reader of cubins on a damaged one."""
    choices = Choices(data)
    damaged = bytearray(image())
    for _ in range(1 + choices.number(6)):
        damaged[choices.number(len(damaged))] = choices.number(256)
    length = len(damaged) if choices.number(4) else choices.number(len(damaged))
    try:
        cubin = Cubin.from_image(bytes(damaged[:length]), "scale")
        warp_operations(cubin.image, cubin.symbol)
    except ToolkitError as error:
        _check_line(error)


KERNELS = {
    "scale": SOURCE,
    # a table of functions, a constant, a variable with a content, and local memory
    "tables": """__constant__ float c[4] = {1, 2, 3, 4};
__device__ float v[4] = {4, 3, 2, 1};
__device__ __noinline__ float f(float x) { return x * v[1]; }
__device__ __noinline__ float g(float x) { return x - c[2]; }
__device__ float (*const table[])(float) = {f, g};
extern "C" __global__ void tables(float *x, int n) {
    float kept[8];
    for (int i = 0; i < 8; i++) kept[i] = x[i];
    x[threadIdx.x] = table[n & 1](kept[threadIdx.x & n]);
}""",
}
CUBINS = [(kernel, arch) for arch in ("sm_75", "sm_86", "sm_90", "sm_120") for kernel in KERNELS]
# Of a word that is changed: sizes, offsets and counts that are too small or far too large.
WORDS_OF_CUBINS = (0, 1, 7, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x1000000)
MOST_INSTRUCTIONS = 20_000


@cache
def cubin(kernel: str, arch: str) -> bytes:
    source = KERNELS[kernel]
    return compile_cubin(source, name=f"{kernel}.cu", kernel=kernel, arch=arch).image


def cubins(data: bytes) -> None:
    """Commands on a damaged cubin: results, or one line that names the file."""
    choices = Choices(data)
    kernel, arch = CUBINS[choices.number(len(CUBINS))]
    damaged = bytearray(cubin(kernel, arch))
    for _ in range(1 + choices.number(4)):
        _damage_cubin(damaged, choices)
    asked = ("-g", "1", "-b", "32", "-a", "f32[32]=ones", "-a", "i32=32", "--seed", "1")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.cubin"
        path.write_bytes(damaged)
        asked += ("--max-instructions", str(MOST_INSTRUCTIONS))
        command = choices.number(8)
        if command == 0:
            _run_command(["reorder", str(path)], names=path)
        else:
            _run_command([("simulate", "check")[command % 2], str(path), *asked], names=path)


def _damage_cubin(image: bytearray, choices: Choices) -> None:
    """Change a byte, a word or a stretch: of the ELF header, of the tables at its end, anywhere."""
    headers = struct.unpack_from("<Q", image, 0x28)[0] if len(image) > 0x30 else 0  # e_shoff
    begin, end = ((0, 64), (headers, len(image)), (0, len(image)))[choices.number(3)]
    at = min(begin, len(image)) + choices.number(end - begin)
    what = choices.number(8)
    if what == 0:
        del image[at:]
    elif what == 1:
        image[at : at + 16] = bytes(16)
    elif what < 5:
        image[at : at + 1] = bytes([choices.number(256)])
    else:
        word = WORDS_OF_CUBINS[choices.number(len(WORDS_OF_CUBINS))]
        image[at & ~3 : (at & ~3) + 4] = struct.pack("<I", word)


def _run_command(words: list[str], *, names: Path) -> None:
    """A command that works, or ends with one line that names a file."""
    result = CliRunner().invoke(app, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 1), result.output
    if result.exit_code and not result.stdout:
        (line,) = result.stderr.splitlines()
        assert str(names) in line, line


def launch(data: bytes) -> None:
    """The options of `simulate` and `check` on any text."""
    parts = data.decode(errors="replace").split("\n")
    parts += [""] * (8 - len(parts))
    try:
        parse_arguments(parts[6:])
        parse_call(
            source=Path("kernel.cubin"),
            kernel=parts[0],
            grid=parts[1],
            block=parts[2],
            shared=0,
            arguments=parts[6:],
            arch=parts[3],
            device=None,
            defines=[parts[4]],
            options=[],
            blocks=parts[5],
            max_instructions=None,
            seed=1,
        )
    except ToolkitError as error:
        _check_line(error)


WORDS = [
    "profile",
    "report",
    "compare",
    "list",
    "doctor",
    "simulate",
    "check",
    "--shape",
    "--variant",
    "--device",
    "--executor",
    "theory",
    "--seed",
    "--samples",
    "--html",
    "--record",
    "--json",
    "--resume",
    "-g",
    "-b",
    "-a",
    "-D",
    "--arch",
    "--blocks",
    "-k",
    "--strict",
    "--top",
    "--help",
    "4",
    "4x4",
    "1,1",
    "tiled",
    "tiled:tile=16",
    "t4",
    "f32[4]",
    "i32=1",
    "sm_90",
    "devices",
    "x.cu",
]


def command_line(data: bytes) -> None:
    """The commands, on words of theirs and of nobody's; what would work for long is left out."""
    choices = Choices(data)
    count = 1 + choices.number(6)
    words = [
        WORDS[n] if (n := choices.number(2 * len(WORDS))) < len(WORDS) else choices.text()
        for _ in range(count)
    ]
    if "doctor" in words[:1] or "profile" in words[:1]:
        words = [*words, "--seconds", "none"]  # refused before anything runs
    result = CliRunner().invoke(app, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 1, 2, 3)
    assert "Traceback" not in result.output


def _check_line(error: ToolkitError) -> None:
    """What a user gets to see is one line, of a length that can be read."""
    assert "\n" not in str(error), str(error)
    assert len(str(error)) < 10_000, str(error)[:200]


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        stored_text,
        stored_document,
        stored_launch,
        report,
        disassembly,
        operands,
        machine_code,
        cubins,
        launch,
        command_line,
    )
}


def seeds(name: str) -> list[bytes]:
    """Inputs to begin with."""
    rng = np.random.default_rng(1)
    drawn = [rng.bytes(64) for _ in range(16)]
    texts = {
        "stored_text": [json.dumps(document()).encode(), DEEP.encode(), b'{"schema_version": 1}'],
        "operands": [b"R0, R2.64, desc[UR4][R2.64+0x10], -|R3|, c[0x0][0x160], !P0, 0x1f, `(x)"],
        "launch": [b"k\n8,8\n16\nsm_90\nA=1\nall\nf32[4,4]=zeros\ni32=4\nstruct:i32=1,f32=2"],
    }
    return [*texts.get(name, []), *drawn]
