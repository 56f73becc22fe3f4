"""Kernels that tests compile, compiled and disassembled together before the first test.

nvdisasm takes half a second for each run, for one kernel or for a hundred of an architecture. The
runs for single kernels of tests took a quarter of the processor time of the suite. `ahead.json.xz`
lists these kernels: by file or rung where the repository has their source, else with their text.
The list decides no result: an image that is missing is compiled and disassembled when a test needs
it, and an image that no test needs costs 50 ms. To write the list again, or to add the kernels of
some files, from a run with an empty cache:

    python -m pytest --record-ahead FOLDER && python -m tests.ahead FOLDER
    python -m pytest --record-ahead FOLDER FILES && python -m tests.ahead FOLDER --add
"""

import argparse
import json
import lzma
import os
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

from validation import ROOT

FILE = Path(__file__).with_name("ahead.json.xz")
MOST_CHARACTERS = (
    20_000  # of a text in the list: larger ones are generated, or many kernels already
)
FIELDS = ("source", "name", "kernel", "options")  # of a request to the compiler


class Recorder:
    """Records the kernels that are disassembled alone, each with the file of the test."""

    def __init__(self, folder):
        from toolkit.machine_code import compile, disassemble

        self.test_file = ""
        self._out = Path(folder) / f"{os.environ.get('PYTEST_XDIST_WORKER', 'gw0')}.json"
        self._requests, self._found, self._is_merged = {}, [], False
        self._wrap(compile, "_compiled", self._compiled)
        self._wrap(disassemble, "_run", self._run)
        self._wrap(disassemble, "_run_merged", self._run_merged)

    def _wrap(self, module, name, wrapper):
        real = getattr(module, name)
        setattr(module, name, lambda *given: wrapper(real, *given))

    def _compiled(self, real, request):
        made = real(request)
        if request.cacheable:
            self._requests[made.image] = request
        return made

    def _run(self, real, program, image):
        request = None if self._is_merged else self._requests.get(image)
        if request is not None and self.test_file:
            fields = {name: getattr(request, name) for name in FIELDS}
            self._found.append({"test": self.test_file, **fields})
        return real(program, image)

    def _run_merged(self, real, program, images):
        self._is_merged = True
        try:
            return real(program, images)
        finally:
            self._is_merged = False

    def write(self):
        self._out.parent.mkdir(parents=True, exist_ok=True)
        self._out.write_text(json.dumps(self._found), encoding="utf-8")


def compile_ahead(test_files):
    """Compile what the tests of these files need, given once for each test.

    Files of which few tests are selected are left out. Each worker compiles a part. Nothing fails
    here: the test that needs what does not compile finds the error.
    """
    from toolkit.machine_code import compile
    from toolkit.machine_code.disassemble import disassemble_together

    tests = Counter(test_files)
    entries = _stored()
    wanted = Counter(entry["test"] for entry in entries)
    entries = [one for one in entries if 2 * tests[one["test"]] >= wanted[one["test"]]]
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    first, end = (len(entries) * one // workers for one in (worker, worker + 1))
    texts, images = _texts() if entries else {}, []
    with suppress(Exception):  # the test that needs it reports the error
        version = compile.compiler_version()
        for entry in entries[first:end]:
            with suppress(Exception):
                request = compile._Request(
                    source=texts[entry["of"]] if "of" in entry else entry["source"],
                    name=entry["name"],
                    kernel=entry["kernel"],
                    options=tuple(entry["options"]),
                    compiler=version,
                )
                images.append(compile._compiled(request).image)
        disassemble_together(images)


def _stored():
    return json.loads(lzma.decompress(FILE.read_bytes())) if FILE.exists() else []


def _texts():
    """Sources of the repository, by a name of each: a rung, a file, or one with its parts."""
    from kernels.ladder import LADDER
    from kernels.paths import source_of

    folders = ("kernels", "validation", "tests", "toolkit")
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.cu"))]
    found = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in files}
    of_products = [path.name for path in files if path.parent.name.endswith("products")]
    return (
        found
        | {variant.name: variant.source for variant in LADDER}
        | {f"{name} with its parts": source_of(name) for name in of_products}
    )


def _is_of_a_machine(text):
    """True if a text has a path that no other run has."""
    return any(path in text for path in (str(ROOT), tempfile.gettempdir(), "/pytest-of-"))


def _key(entry):
    """Key of an entry, equal for entries that are the same request to the compiler."""
    return json.dumps([entry.get(name) for name in ("name", "kernel", "options", "of", "source")])


def _listed(folder, stored=()):
    """`stored` entries and those of all workers, without duplicates, by architecture.

    Stored entries of a file that is gone are left out.
    """
    names = {text: name for name, text in _texts().items()}
    found = {_key(entry): entry for entry in stored if (ROOT / entry["test"]).exists()}
    for path in sorted(Path(folder).glob("*.json")):
        for entry in json.loads(path.read_text("utf-8")):
            text = entry.pop("source")
            if any(_is_of_a_machine(part) for part in (text, *entry["options"])):
                continue
            if len(text) <= MOST_CHARACTERS or text in names:
                named = {"of": names[text]} if text in names else {"source": text}
                found.setdefault(_key(entry | named), entry | named)
    return sorted(found.values(), key=lambda one: (one["options"], one["test"], one["name"]))


def main():
    """Write the list from what the workers recorded, or add that to the list."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="what --record-ahead wrote")
    parser.add_argument("--add", action="store_true", help="keep what is listed")
    chosen = parser.parse_args()
    if not any(chosen.folder.glob("*.json")):
        sys.exit(f"{chosen.folder} holds no recording: run pytest --record-ahead {chosen.folder}")
    entries = _listed(chosen.folder, _stored() if chosen.add else ())
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":"))
    FILE.write_bytes(lzma.compress(text.encode(), preset=9))
    print(f"{len(entries)} kernels in {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
