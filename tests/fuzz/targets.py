"""Readers of untrusted input, as functions of bytes: they raise only if there is a bug.

`test_hostile_input.py` calls them with inputs of hypothesis, and with the cases of `cases.py`.
"""

import json
import re
import struct
import sys
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache
from io import StringIO
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.main import get_command

from analysis.errors import ToolkitError
from tests.cubins import cubin_of
from tests.probe import parse_operands
from tests.toolkit.cli.commands import invoke
from toolkit.cli.app import app
from toolkit.cli.argument_syntax import parse_arguments
from toolkit.cli.errors import damage_of
from toolkit.cli.options import LaunchOptions
from toolkit.cli.parsed_call import parse_call
from toolkit.machine_code import disassemble as disassembly_of
from toolkit.machine_code.decode import OperandError, decode, parse_guard
from toolkit.machine_code.disassemble import disassemble
from toolkit.machine_code.elf import cubin_file
from toolkit.machine_code.kernel import Kernel
from toolkit.profiling.profile import profile
from toolkit.store.profile_json import JOURNAL_PARTS, dumps, parse

VARIANTS = ["tiled", "vectorized", "cpu"]
RUN = ["--shape=64", *(f"--variant={one}" for one in VARIANTS)]
RUN += ["--executor=simulate", "--device=t4", "--seed=1"]
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>"
HOSTILE = (
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
def document():
    """A profile as it is stored."""
    made = profile([64], VARIANTS, executor="simulate", device="t4", seed=1)
    return json.loads(dumps(made))


@cache
def launch_document():
    """A launch as `simulate --json` prints it, a prediction included."""
    with TemporaryDirectory() as folder:
        source = Path(folder) / "scale.cu"
        source.write_text(SOURCE, encoding="utf-8")
        made = invoke(f"simulate '{source}' -g 1 -b 32 -a f32[32] -a i32=32 -d t4 --json")
    return json.loads(made.stdout)


@cache
def image():
    """The machine code of a small kernel."""
    return cubin_of(SOURCE, "scale").image


@cache
def listing():
    """Output of nvdisasm for the image."""
    return disassemble(image())


class Choices:
    """Decisions drawn from bytes; zeros when they have run out."""

    def __init__(self, data):
        self._data, self._at = data, 0

    def number(self, below):
        """0 to `below` - 1."""
        (value,) = struct.unpack("<I", self._data[self._at : self._at + 4].ljust(4, b"\0"))
        self._at += 4
        return int(value % max(below, 1))

    def text(self):
        """Rest of the data as text."""
        return self._data[self._at :].decode(errors="surrogateescape")


def stored_text(data):
    """The reader of profile.json on any text."""
    _read(data.decode(errors="replace"))


def profiles(data):
    """Commands on a damaged profile, or on the damaged journal of a run."""
    choices = Choices(data)
    with _folder() as folder:
        _write(folder / "before.json", document())
        if choices.number(4):
            text = _damaged(document(), choices)
            damaged = "damaged.json"
        else:
            text = _torn(_journal(), choices)
            damaged = "damaged.json.journal"
        (folder / damaged).write_text(text, encoding="utf-8", errors="surrogatepass")
        compared = ["compare", "before.json", damaged, "--fail-on", "counts,time"]
        words = [
            ["profile", *RUN, "--resume", "--record", "damaged.json", "--html", "p.html"],
            ["compare", damaged, "before.json"],
            [*compared, "--json"],
        ][choices.number(8) :]
        _run_command(words[0] if words else compared)


def launches(data):
    """The same for what `simulate --json` printed."""
    choices = Choices(data)
    with _folder() as folder:
        _write(folder / "before.json", launch_document())
        text = _damaged(launch_document(), choices)
        (folder / "damaged.json").write_text(text, encoding="utf-8", errors="surrogatepass")
        files = ["before.json", "damaged.json"]
        files = files[::-1] if choices.number(2) else files
        more = ([], ["--json"], ["--fail-on", "counts"])[choices.number(3)]
        _run_command(["compare", *files, *more])


@contextmanager
def _folder():
    """An empty working folder, which is the data folder too, on a machine with no GPU."""
    with TemporaryDirectory() as name, chdir(name), pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pycuda", None)
        yield Path(name)


def _write(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")


@cache
def _journal():
    """The journal of a run that was cut short."""
    whole = document()
    parts = [{name: [] for name in JOURNAL_PARTS} | {"records": [r]} for r in whole["records"][:2]]
    parts[0]["listings"] = whole["listings"]
    head = whole | {name: [] for name in JOURNAL_PARTS}
    return "".join(json.dumps(one) + "\n" for one in (head, *parts))


def _torn(text, choices):
    """Lines of which some are damaged, lost, doubled or cut."""
    lines = text.splitlines(keepends=True)
    for _ in range(1 + choices.number(3)):
        at = choices.number(len(lines))
        what = choices.number(5)
        if what == 0:
            lines[at:] = [lines[at][: choices.number(len(lines[at]))]]
        elif what == 1:
            lines[at : at + 1] = [lines[at], lines[at]]
        elif what == 2:
            lines[at] = "7\n"
        else:
            with suppress(ValueError, RecursionError):  # of what was damaged before
                lines[at] = _damaged(json.loads(lines[at]), choices) + "\n"
    return "".join(lines)


def _damaged(whole, choices):
    """A document with hostile places, as text."""
    damaged = json.loads(json.dumps(whole))
    for _ in range(1 + choices.number(3)):
        _damage(damaged, choices)
    try:
        text = json.dumps(damaged)
    except ValueError:  # Python has no text for such an integer
        text = json.dumps(whole).replace("1", "9" * 5000, 1)
    if choices.number(20) == 0:
        text = text.replace("[", DEEP[: choices.number(len(DEEP))], 1)
    elif choices.number(10) == 0:
        at = choices.number(len(text))
        text = text[:at] + choices.text()[:8] + text[at + choices.number(8) :]
    return text


def _read(text):
    found = None
    with _one_line():
        found = parse(text, "profile.json")
    if found:
        dumps(found)


def _damage(value, choices):
    """Put something hostile into one place of a document."""
    holder, key = None, None
    while isinstance(value, dict | list) and value and (holder is None or choices.number(8)):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        holder, key = value, keys[choices.number(len(keys))]
        value = holder[key]
    if holder is None:
        return
    what = choices.number(len(HOSTILE) + 2)
    if what < len(HOSTILE):
        holder[key] = HOSTILE[what]
    elif what == len(HOSTILE):
        del holder[key]
    else:
        holder[key] = choices.text()


def _texts(value):
    """The places of all texts in it: what holds them, and by which key."""
    keys = value if isinstance(value, dict) else range(len(value))
    found = []
    for key in list(keys):
        if isinstance(value[key], dict | list):
            found += _texts(value[key])
        elif isinstance(value[key], str):
            found.append((value, key))
    return found


def report(data):
    """A page made of a profile whose texts are hostile: they stand in it as text."""
    from reports import render

    choices = Choices(data)
    damaged = json.loads(json.dumps(document()))
    texts = _texts(damaged)
    for _ in range(1 + choices.number(8)):
        holder, key = texts[choices.number(len(texts))]
        strings = [x for x in HOSTILE if isinstance(x, str)]
        which = choices.number(len(strings) + 1)
        holder[key] = strings[which] if which < len(strings) else choices.text()
    with _one_line():
        found = parse(json.dumps(damaged), "profile.json")
        with damage_of(Path("profile.json")):
            page = render(found)
        assert MARKUP not in page
        assert "onerror=alert(1)>" not in re.sub(r"\\u003[ce]|&[lg]t;", "", page)


def disassembly(data):
    """The decoder on what nvdisasm never prints: in one of its texts, or anywhere."""
    choices = Choices(data)
    damaged = json.loads(listing())
    places = _texts(damaged)
    for _ in range(1 + choices.number(3)):
        holder, key = places[choices.number(len(places))]
        at, length = choices.number(len(holder[key]) + 1), choices.number(8)
        holder[key] = holder[key][:at] + choices.text()[:80] + holder[key][at + length :]
    text = json.dumps(damaged)
    if choices.number(8) == 0:
        at = choices.number(len(text))
        text = text[:at] + choices.text() + text[at + 1 :]
    with _one_line():
        decode(text)


def operands(data):
    """Operands and guards of any text."""
    text = data.decode(errors="replace")
    for function in (parse_operands, parse_guard):
        try:
            function(text)
        except OperandError:
            continue


def machine_code(data):
    """The reader of cubins on a damaged one."""
    choices = Choices(data)
    damaged = bytearray(image())
    for _ in range(1 + choices.number(6)):
        damaged[choices.number(len(damaged))] = choices.number(256)
    length = len(damaged) if choices.number(4) else choices.number(len(damaged))
    with _one_line():
        Kernel.from_image(bytes(damaged[:length]), "scale")


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
LONG_WORDS_OF_CUBINS = (0, 1, 1 << 20, 1 << 33, 1 << 40, (1 << 63) - 16, 1 << 63, (1 << 64) - 1)
MOST_INSTRUCTIONS = 20_000
DISASSEMBLY_LIMIT_S = 10  # nvdisasm does not end on some


@cache
def cubin(kernel, arch):
    source = KERNELS[kernel]
    return cubin_of(source, kernel, arch).image


def cubins(data):
    """Commands on a damaged cubin: results, or one line that names the file."""
    choices = Choices(data)
    kernel, arch = CUBINS[choices.number(len(CUBINS))]
    damaged = bytearray(cubin(kernel, arch))
    places = [(x.offset, x.offset + x.size) for x in cubin_file(bytes(damaged)).sections if x.size]
    for _ in range(1 + choices.number(4)):
        _damage_cubin(damaged, places, choices)
    asked = ("-g", "1", "-b", "32", "-a", "f32[32]=ones", "-a", "i32=32", "--seed", "1")
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(disassembly_of, "LIMIT_S", DISASSEMBLY_LIMIT_S)
        path = Path(folder) / "damaged.cubin"
        path.write_bytes(damaged)
        asked += ("--max-instructions", str(MOST_INSTRUCTIONS))
        command = ("simulate", "check")[choices.number(2)]
        _run_command([command, str(path), *asked], names=path)


def _damage_cubin(image, places, choices):
    """Change a byte, a word or a stretch: of the ELF header, of the tables at its end, anywhere,
    or of a section, each of which is as likely: of symbols, attributes, lines and relocations too.
    """
    headers = struct.unpack_from("<Q", image, 0x28)[0] if len(image) > 0x30 else 0  # e_shoff
    section = places[choices.number(len(places))]
    parts = ((0, 64), (headers, len(image)), (0, len(image)), section, section)
    begin, end = parts[choices.number(len(parts))]
    at = min(begin, len(image)) + choices.number(end - begin)
    what = choices.number(10)
    if what == 0:
        del image[at:]
    elif what == 1:
        image[at : at + 16] = bytes(16)
    elif what < 5:
        image[at : at + 1] = bytes([choices.number(256)])
    elif what < 7:
        word = LONG_WORDS_OF_CUBINS[choices.number(len(LONG_WORDS_OF_CUBINS))]
        image[at & ~7 : (at & ~7) + 8] = struct.pack("<Q", word)
    else:
        word = WORDS_OF_CUBINS[choices.number(len(WORDS_OF_CUBINS))]
        image[at & ~3 : (at & ~3) + 4] = struct.pack("<I", word)


def _run_command(words, *, names="", codes=(0, 1, 3)):
    """A command that works, or ends with one line that names a file."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        command_group()(words, prog_name="gemm-ladder")
    assert end.value.code in codes, err.getvalue()
    assert "Traceback" not in out.getvalue() + err.getvalue()
    if end.value.code in (1, 3) and not out.getvalue():
        *others, line = err.getvalue().splitlines()
        assert line.startswith("error: "), line
        assert len(line) < 10_000, line[:200]
        assert all(other.startswith(("note: ", "wrote ")) for other in others), others
        assert str(names) in line, line


def launch(data):
    """The options of `simulate` and `check` on any text."""
    parts = data.decode(errors="replace").split("\n")
    parts += [""] * (8 - len(parts))
    with _one_line():
        parse_arguments(parts[6:])
        parse_call(
            LaunchOptions(
                source="kernel.cubin",
                kernel=parts[0],
                grid=parts[1],
                block=parts[2],
                arguments=parts[6:],
                arch=parts[3],
                defines=[parts[4]],
                blocks=parts[5],
                seed=1,
            )
        )


# What the options and arguments of the commands are given, besides any text and any number.
VALUES = {
    "shape": ["4", "4x4x4", "16,8x4x12", "0", "4x", "99999999"],
    "variant": ["tiled", "tiled:tile=16", "cpu", "cublas", "tiled:", "tiled:tile=5", "tield"],
    "device": ["t4", "H200", "rtx-309"],
    "executor": ["theory", "simulate", "gpu", "gpus"],
    "source": ["k.cu", "k.cubin", "launch.json", "absent.cu", ".", "/dev/zero", "bad.cu"],
    "grid": ["1", "2,1", "0", "-1", "1,1,1,1", "99999999999"],
    "block": ["32", "1,32", "2048", "x"],
    "kernel": ["scale", "scale<1>", "absent"],
    "arg": [
        "f32[32]",
        "i32=4",
        "4",
        "f16[8]",
        "x.npy",
        "f32[9999999999999]",
        "struct:i32=1",
        "f32=",
    ],
    "arch": ["sm_90", "sm_75", "sm_9", "90"],
    "define": ["A=1", "A", "=", "A=(", "1A=2"],
    "option": ["-lineinfo", "--maxrregcount=16", "--nothing"],
    "blocks": ["all", "representative", "1", "0", "-1"],
    "save": ["0=out.npy", "0=x.npy", "9=out.npy", "0", "0=k.cu"],
    "html": ["out.html", "saved.json", ".", "absent/out.html", "loop"],
    "record": ["out.json", "saved.json", ".", "k.cu"],
    "output": ["out.cubin", "k.cu", "k.cubin", "."],
    "saved": ["saved.json", "launch.json", "absent.json", "k.cu", "/dev/zero"],
    "recorded": ["saved.json", "absent.json"],
    "before": ["saved.json", "launch.json", "k.cu", "/dev/zero"],
    "after": ["saved.json", "launch.json", "other.json", "absent.json"],
    "fail_on": ["counts", "time", "counts,time", "speed"],
    "what": ["devices", "variants", "nothing"],
    "cache": ["cache", "k.cu"],
}
NUMBERS = ["1", "1", "0", "-1", "0.5"]
ODD = st.integers().map(str) | st.floats().map(str) | st.text()
# What would work for long is kept short, or is refused: the last one of an option counts.
LIMITS = {
    "profile": ["--seconds", "0.01", "--variant", "tiled"],
    "tune": ["--predict", "1", "--measure", "1", "--seconds", "0.01", "--no-keep"],
    "simulate": ["--max-instructions", "20000"],
    "check": ["--max-instructions", "20000"],
}
OUTPUTS = {"--output", "-o", "--html", "--record"}
RARE = {"doctor": 20, "tune": 4}  # what takes long: one in so many


@st.composite
def argument_lists(draw):
    """A command with options and values that it may, or may not, take."""
    commands = command_group().commands
    name = draw(st.sampled_from(sorted(commands)))
    if draw(st.integers(1, RARE.get(name, 1))) > 1:
        return [name, "--help"]
    words = [name]
    for parameter in commands[name].params:
        is_option = parameter.param_type_name == "option"
        if is_option and not (parameter.required or draw(st.integers(0, 5)) == 5):
            continue
        usual = st.sampled_from(VALUES.get(parameter.name, NUMBERS))
        values = [draw(ODD if draw(st.integers(0, 9)) == 9 else usual) for _ in range(2)]
        many = parameter.nargs != 1 or getattr(parameter, "multiple", False)
        for one in values[: 2 if many and draw(st.booleans()) else 1]:
            if not is_option:
                words.append(one)
            elif getattr(parameter, "is_flag", False):
                words.append(draw(st.sampled_from(parameter.opts)))
            else:
                words += [draw(st.sampled_from(parameter.opts)), one]
    if draw(st.integers(0, 9)) == 9:
        words.insert(draw(st.integers(0, len(words))), draw(st.text()))
    return [*words, *LIMITS.get(name, [])]


@cache
def command_group():
    return get_command(app)


@given(argument_lists())
@settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
def _any_arguments(words):
    with _folder() as folder:
        _write(folder / "saved.json", document())
        _write(folder / "other.json", document() | {"seed": 2})
        _write(folder / "launch.json", launch_document())
        (folder / "k.cu").write_text(SOURCE, encoding="utf-8")
        (folder / "bad.cu").write_text("int x = ;", encoding="utf-8")
        (folder / "counters.csv").write_text('"ID","Metric Name"\n1,x\n', encoding="utf-8")
        (folder / "k.cubin").write_bytes(image())
        np.save(folder / "x.npy", np.ones(32, np.float32))
        (folder / "loop").symlink_to("loop")
        inputs = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        _run_command(words, codes=(0, 1, 2, 3))
        read = {word for option, word in pairwise(words) if option not in OUTPUTS}
        for path, content in inputs.items():
            is_resumed = path.name == "saved.json" and "--resume" in words
            assert path.name not in read or is_resumed or path.read_bytes() == content, words


def command_line(data):
    """The commands with any arguments, which hypothesis makes of the bytes."""
    _any_arguments.hypothesis.fuzz_one_input(data)  # type: ignore[attr-defined]


@contextmanager
def _one_line():
    """Assert that the message of an error is one line, short enough to read."""
    try:
        yield
        return
    except ToolkitError as error:
        said = str(error)
    assert "\n" not in said, said
    assert len(said) < 10_000, said[:200]


TARGETS = {
    target.__name__: target
    for target in (
        stored_text,
        profiles,
        launches,
        report,
        disassembly,
        operands,
        machine_code,
        cubins,
        launch,
        command_line,
    )
}


def seeds(name):
    """Inputs to begin with."""
    rng = np.random.default_rng(1)
    drawn = [rng.bytes(64) for _ in range(16)]
    texts = {
        "operands": [b"R0, R2.64, desc[UR4][R2.64+0x10], -|R3|, c[0x0][0x160], !P0, 0x1f, `(x)"],
        "launch": [b"k\n8,8\n16\nsm_90\nA=1\nall\nf32[4,4]=zeros\ni32=4\nstruct:i32=1,f32=2"],
    }
    if name == "stored_text":  # it takes seconds to make
        texts[name] = [json.dumps(document()).encode(), DEEP.encode(), b'{"schema_version": 1}']
    return [*texts.get(name, []), *drawn]
