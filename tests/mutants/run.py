"""Does the suite find bugs? Runs tests on a copy of the tree with each mutant of mutants.json.

    python -m tests.mutants.run map     # once: which test executes which function, and its time
    python -m tests.mutants.run         # every mutant
    python -m tests.mutants.run 3 17    # some
    python -m tests.mutants.run table   # what was found

For each mutant, the tests that execute its function run, cheapest first, until one fails; the
exhaustive tests run only on mutants that these missed. Every mutant gets a fresh copy of the tree
and a fresh cache, with nothing in it but compiler output from the run of `map`. Work is kept in
the folder of --work, not in the repository.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from tests.mutants import reached
from tests.mutants.edits import Mutant, NotFoundError, apply, find, stored
from tests.mutants.plugin import HANGS_AFTER_S
from validation import ROOT

COLLECTION_S = 1.0  # what a file of tests costs before its first test
IMPORT = "import"  # in the map: what the imports of the tests execute
FILES_AT_A_TIME = 6
UNMAPPED_S = 30.0  # for a file that the map lacks
FIRST_BATCH_S, GROWTH = 4, 4
MEMORY_BYTES = 12 << 30  # a mutant may ask for more than there is
COMPILED = ("*.cubin", "*.sass.json")
NICE = 10


@dataclass(frozen=True, kw_only=True)
class Work:
    """The folder of --work."""

    folder: Path

    @property
    def pristine(self) -> Path:
        return self.folder / "pristine"

    @property
    def tree(self) -> Path:  # always the same: paths are part of some keys of compiler output
        return self.folder / "tree"

    @property
    def compiled(self) -> Path:
        return self.folder / "compiled"

    @property
    def map(self) -> Path:
        return self.folder / "map.jsonl"

    @property
    def results(self) -> Path:
        return self.folder / "results.json"


@dataclass(frozen=True, kw_only=True)
class Test:
    seconds: float
    reached: frozenset[str]  # "package language function"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="*", help="map, table, or numbers of mutants")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "mutants")
    parser.add_argument("--cap", type=int, default=900, help="seconds for the tests of a mutant")
    parser.add_argument("--no-exhaustive", action="store_true")
    parser.add_argument("--resume", action="store_true", help="leave out mutants with a result")
    parser.add_argument("--tests", nargs="*", default=["tests"], help="map: of these only")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and end the tests that run
    work = Work(folder=options.work.resolve())
    work.folder.mkdir(parents=True, exist_ok=True)
    if options.what == ["map"]:
        make_map(work, options.tests)
    elif options.what != ["table"]:
        chosen = [int(number) for number in options.what] or list(range(len(stored())))
        if options.resume:
            known = read_results(work)
            chosen = [number for number in chosen if str(stored()[number]) not in known]
        if not options.what:
            chosen = [number for number in chosen if not stored()[number].equivalent]
        make_pristine(work)
        run_all(work, chosen, options.cap, with_exhaustive=not options.no_exhaustive)
    print(table(work))
    return 0


# The copy of the tree.


def make_pristine(work: Work) -> None:
    """A copy of what git knows of, built."""
    shutil.rmtree(work.pristine, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (work.pristine / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, work.pristine / name)
    build(work.pristine)


def build(root: Path, package: str = "") -> None:
    """Build the native libraries, or those of a package, in haste: with less optimization."""
    script = f"""
from toolkit.sass import native
for name, (sources, flags) in native.libraries().items():
    if name.startswith({package!r}):
        flags = ["-O1" if flag == "-O3" else flag for flag in flags]
        output = native.ROOT / native.file_of(name)
        paths = [native.ROOT / source for source in sources]
        native.compile_library(native.compiler(), paths, output, flags)
"""
    command = [sys.executable, "-c", script]
    subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)


def fresh_tree(work: Work) -> Path:
    shutil.rmtree(work.tree, ignore_errors=True)
    shutil.copytree(work.pristine, work.tree, symlinks=True)
    return work.tree


def fresh_cache(work: Work) -> Path:
    cache = work.folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir()
    for pattern in COMPILED if work.compiled.exists() else ():
        for path in work.compiled.glob(pattern):
            shutil.copy2(path, cache / path.name)
    return cache


def pytest(work: Work, *arguments: str, limit_s: float | None = None, **variables: str) -> int:
    """The exit code of pytest in the tree; -1 for one that did not end within its limit."""
    environment = os.environ | {
        "PYTHONPATH": str(work.tree),
        "GEMM_LADDER_CACHE": str(work.folder / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    command = [sys.executable, "-m", "pytest", "-p", "tests.mutants.plugin", "-n", "0", "-q"]
    command += ["--no-header", "--tb=short", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    with (work.folder / "pytest.log").open("a", encoding="utf-8") as log:
        child = subprocess.Popen(
            [*command, *arguments],
            cwd=work.tree,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_restrain,  # noqa: PLW1509
        )
        try:
            return child.wait(limit_s)
        except subprocess.TimeoutExpired:
            return -1
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _restrain() -> None:
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))


# The map of what tests execute.


def make_map(work: Work, tests: list[str]) -> None:
    """Run the suite once in a tree whose functions say when they are executed."""
    make_pristine(work)
    tree = fresh_tree(work)
    reached.instrument(tree)
    build(tree)
    cache = fresh_cache(work)
    names = json.loads((tree / reached.NAMES).read_text(encoding="utf-8"))
    found = [path for name in tests for path in sorted((tree / name).rglob("test_*.py"))]
    files = [str(path.relative_to(tree)) for path in found] or tests
    for first in range(0, len(files), FILES_AT_A_TIME):
        raw = work.folder / "map.raw"
        raw.write_text("", encoding="utf-8")
        chosen = files[first : first + FILES_AT_A_TIME]
        pytest(work, *chosen, MUTANTS_MAP=str(raw))
        add_to_map(work, [json.loads(line) for line in raw.read_text().splitlines()], names)
        for pattern in COMPILED:
            work.compiled.mkdir(exist_ok=True)
            for path in cache.glob(pattern):
                shutil.copy2(path, work.compiled / path.name)
    entries = [json.loads(line) for line in work.map.read_text(encoding="utf-8").splitlines()]
    seconds = sum(entry["seconds"] for entry in entries)
    outcomes = Counter(entry["outcome"] for entry in entries)
    print(f"{len(entries)} tests, {seconds:.0f} s: {dict(outcomes)}")


def add_to_map(work: Work, entries: list[dict], names: list[str]) -> None:
    """Replace what the map says of these entries' files."""
    old = work.map.read_text(encoding="utf-8").splitlines() if work.map.exists() else []
    kept = {entry["test"]: entry for entry in map(json.loads, old)}
    files = {entry["test"].split("::")[0] for entry in entries} - {IMPORT}
    imported = set(kept.get(IMPORT, {}).get("reached", ()))
    kept = {test: entry for test, entry in kept.items() if test.split("::")[0] not in files}
    for entry in entries:
        reaches = {names[k] for k in entry["reached"]}
        if entry["test"] == IMPORT:
            reaches = imported = imported | reaches
        kept[entry["test"]] = entry | {"reached": sorted(reaches)}
    lines = [json.dumps(entry) + "\n" for entry in kept.values()]
    work.map.write_text("".join(lines), encoding="utf-8")


def read_map(work: Work) -> dict[str, Test]:
    """The tests that pass in an instrumented tree, and what their imports execute."""
    tests = {}
    for line in work.map.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["outcome"] in ("passed", ""):
            reaches = frozenset(entry["reached"])
            tests[entry["test"]] = Test(seconds=entry["seconds"], reached=reaches)
    return tests


# The mutants.


def run_all(work: Work, chosen: list[int], cap_s: int, *, with_exhaustive: bool) -> None:
    tests = read_map(work)
    old = read_results(work)
    mutants = stored()
    for number in chosen:
        mutant = mutants[number]
        begin = time.monotonic()
        result = {"mutant": str(mutant), **run_one(work, mutant, tests, old, cap_s)}
        if result["verdict"] == "missed" and with_exhaustive and not mutant.equivalent:
            result |= run_exhaustively(work, mutant, tests, cap_s)
        result["seconds"] = round(time.monotonic() - begin)
        write_result(work, result)
        print(number, result["verdict"], f"{result['seconds']} s", mutant, result["by"], flush=True)


def run_one(
    work: Work, mutant: Mutant, tests: dict[str, Test], old: dict[str, dict], cap_s: int
) -> dict[str, str]:
    """What the tests that execute a mutant's function say of it, those that run by default."""
    try:
        file = plant(work, mutant)
    except NotFoundError:
        return {"verdict": "not found", "by": ""}
    except subprocess.CalledProcessError as error:
        return {"verdict": "not built", "by": error.stderr[-300:]}
    wanted = f"{mutant.package} {mutant.language} {mutant.function}"
    always = wanted in tests[IMPORT].reached
    order = {
        name: test.seconds
        for name, test in tests.items()
        if name != IMPORT
        and (always or wanted in test.reached)
        and (work.tree / name.split("::")[0]).exists()
    }
    order |= dict.fromkeys(unmapped(work, tests), UNMAPPED_S)
    last = old.get(str(mutant), {}).get("by", "")
    if not (work.tree / last.partition("::")[0]).is_file():
        last = ""
    end = time.monotonic() + cap_s
    broken: list[str] = []  # tests that fail without the mutant, too
    for batch in batches(order, file.relative_to(work.tree), last):
        while (left_s := end - time.monotonic()) > 0:
            by = run_batch(work, batch, left_s, broken)
            if not by:
                break
            if passes_without(work, by):
                return {"verdict": "found by the fast suite", "by": by}
            broken.append(by)
            plant(work, mutant)
        else:
            return {"verdict": "missed", "by": f"not all tests within {cap_s} s"}
    return {"verdict": "missed", "by": f"{len(order)} tests"}


def passes_without(work: Work, test: str) -> bool:
    """True if a test passes where there is no mutant, or is not known by name."""
    if test.partition("::")[0] == test or ": " in test.partition("::")[0]:
        return True
    fresh_tree(work)
    fresh_cache(work)
    return run_batch(work, {test: UNMAPPED_S}, 20 * HANGS_AFTER_S, []) == ""


def unmapped(work: Work, tests: dict[str, Test]) -> list[str]:
    """Files of tests that are newer than the map, but for those of hardware."""
    known = {name.split("::")[0] for name in tests}
    paths = (path.relative_to(work.tree) for path in (work.tree / "tests").rglob("test_*.py"))
    files = sorted(str(path) for path in paths if path.parts[1] not in ("gpu", "mutants"))
    return [name for name in files if name not in known]


def batches(order: dict[str, float], mutated: Path, last: str) -> list[dict[str, float]]:
    """The test that found it last time; then whole files, those of its name, of its folder and
    cheap ones first, each batch longer than the one before."""
    found = [{last: order.get(last, UNMAPPED_S)}] if last else []
    of_file: dict[str, dict[str, float]] = defaultdict(dict)
    for name, seconds in sorted(order.items(), key=lambda each: each[1]):
        of_file[name.split("::")[0]][name] = seconds

    def cost_s(file: str) -> float:
        return COLLECTION_S + sum(of_file[file].values())

    def key(file: str) -> tuple[bool, int, float]:
        is_of_name = Path(file).stem == f"test_{mutated.stem.strip('_')}"
        folder = Path("tests") / mutated.parent
        outside = len(folder.parts) - len(Path(os.path.commonpath([folder, Path(file)])).parts)
        return not is_of_name, outside, cost_s(file)

    limit_s: float = FIRST_BATCH_S
    batch: dict[str, float] = {}
    spent_s = 0.0
    for file in sorted(of_file, key=key):
        if batch and spent_s + cost_s(file) > limit_s:
            found.append(batch)
            batch, spent_s, limit_s = {}, 0.0, limit_s * GROWTH
        batch = batch | of_file[file]
        spent_s += cost_s(file)
    return [*found, batch] if batch else found


def run_batch(work: Work, order: dict[str, float], limit_s: float, left_out: list[str]) -> str:
    """The test of a batch that fails, "" where none does."""
    order = dict(sorted(order.items(), key=lambda each: each[1]))
    failed = work.folder / "failed.txt"
    running = failed.with_suffix(".running")
    failed.write_text("", encoding="utf-8")
    running.write_text("", encoding="utf-8")
    listed = work.folder / "order.json"
    listed.write_text(json.dumps(order), encoding="utf-8")
    files = dict.fromkeys(name.split("::")[0] for name in order)
    variables = {"MUTANTS_ORDER": str(listed), "MUTANTS_FAILED": str(failed)}
    options = ["-x", *(f"--deselect={name}" for name in left_out)]
    code = pytest(work, *options, *files, limit_s=limit_s, **variables)
    if by := failed.read_text(encoding="utf-8").split("\n")[0]:
        return by
    if code in (0, -1, 5):
        return ""
    return running.read_text(encoding="utf-8") or f"imports: pytest ends with {code}"


def run_exhaustively(
    work: Work, mutant: Mutant, tests: dict[str, Test], cap_s: int
) -> dict[str, str]:
    """The same for exhaustive tests, of files with a test that executes the function."""
    wanted = f"{mutant.package} {mutant.language} {mutant.function}"
    always = wanted in tests[IMPORT].reached
    reaching = {name.split("::")[0] for name, t in tests.items() if always or wanted in t.reached}
    files = sorted(
        str(path.relative_to(work.tree))
        for path in (work.tree / "tests").rglob("test_*.py")
        if "exhaustive" in path.read_text(encoding="utf-8")
    )
    known = {name.split("::")[0] for name in tests}
    chosen = [name for name in files if name in reaching or name not in known]
    if not chosen:
        return {"verdict": "missed by both"}
    failed = work.folder / "failed.txt"
    failed.write_text("", encoding="utf-8")
    fresh_cache(work)
    variables = {"MUTANTS_FAILED": str(failed)}
    code = pytest(work, "-x", "-m", "exhaustive", *chosen, limit_s=4 * cap_s, **variables)
    if code in (0, 5, -1):
        return {"verdict": "missed by both"}
    by = failed.read_text(encoding="utf-8").split("\n")[0] or f"pytest ends with {code}"
    return {"verdict": "found by the exhaustive suite only", "by": by}


def plant(work: Work, mutant: Mutant) -> Path:
    """Make a tree with the mutant in it, and an empty cache; the file that changed."""
    find(work.pristine, mutant)
    tree = fresh_tree(work)
    fresh_cache(work)
    path = apply(tree, mutant)
    if mutant.language == "c":
        build(tree, mutant.package)
    return path


def read_results(work: Work) -> dict[str, dict]:
    if not work.results.exists():
        return {}
    read: dict[str, dict] = json.loads(work.results.read_text(encoding="utf-8"))
    return read


def write_result(work: Work, result: dict) -> None:
    results = read_results(work) | {result["mutant"]: result}
    work.results.write_text(json.dumps(results, indent=1), encoding="utf-8")


COLUMNS = {
    "found by the fast suite": "found by the fast suite",
    "found by the exhaustive suite only": "only by the exhaustive",
    "missed by both": "missed by both",
    "equivalent": "equivalent",
}


def table(work: Work) -> str:
    """The counts, per package and language, as Markdown."""
    results = read_results(work)
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for mutant in stored():
        verdict = results.get(str(mutant), {}).get("verdict", "not run")
        if mutant.equivalent and not verdict.startswith("found"):
            verdict = "equivalent"
        for row in ((mutant.package, mutant.language), ("all", "")):
            rows[row][verdict] += 1
    others = sorted({v for row in rows.values() for v in row} - set(COLUMNS))
    lines = [["package", "language", "mutants", *COLUMNS.values(), *others]]
    for (package, language), counts in rows.items():
        name = {"c": "C", "python": "Python"}.get(language, "")
        cells = [counts[column] for column in (*COLUMNS, *others)]
        lines.append([package, name, *map(str, (counts.total(), *cells))])
    lines.append(lines.pop(2)) if len(lines) > 2 else None
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
