"""Record what nvdisasm prints of the machine code of recorded/decode.cu on each architecture.

    python -m tests.toolkit.machine_code.decode_snapshots

For test_decode.py, which also decodes what the nvdisasm at hand prints.
"""

import json
from pathlib import Path

from toolkit.machine_code.compile import compile_cubin, compiler_version
from toolkit.machine_code.disassemble import disassemble, disassembler
from validation import recordings

SOURCE = Path(__file__).parent / "recorded" / "decode.cu"
RECORDING = SOURCE.with_suffix(".json")
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def disassembly(arch):
    """Output of nvdisasm for the kernels, reduced to the code."""
    text = SOURCE.read_text(encoding="utf-8")
    cubin = compile_cubin(text, name=SOURCE.name, kernel="calls", arch=arch)
    header, functions = json.loads(disassemble(cubin.image), object_pairs_hook=list)
    kept = [pair for pair in header if pair[0] in ("SM", "Producer")]
    return _dumped([kept, functions])


def _dumped(value):
    """JSON of lists of pairs as objects: an object may have a key twice, as nvdisasm's do."""
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        return "{" + ",".join(f"{json.dumps(k)}:{_dumped(v)}" for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_dumped, value)) + "]"
    return json.dumps(value)


def recorded(arch):
    """Recorded output."""
    return dict(recordings.read(RECORDING)["printed"])[arch]


def main():
    versions = {"compiler": compiler_version(), "disassembler": disassembler().version}
    printed = [[arch, disassembly(arch)] for arch in ARCHITECTURES]
    recordings.write(RECORDING, {**versions, "printed": printed})


if __name__ == "__main__":
    main()
