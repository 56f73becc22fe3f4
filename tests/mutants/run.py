"""Does the suite find bugs? Runs tests on a copy of the tree with each mutant of mutants.json.

    python -m tests.mutants.run               # every mutant
    python -m tests.mutants.run 3 17          # some
    python -m tests.mutants.run --exhaustive  # and the exhaustive tests on those that are missed
    python -m tests.mutants.run --file tests/mutants/printed.json  # those of another list
    python -m tests.mutants.run --processes 14 --beside  # 14 at a time, only tests beside the file

The suite runs once without a mutant: tests that fail in a copy are left out from then on, and what
the compilers made is kept. Each mutant gets a fresh copy of the tree, and a cache with nothing of
our own code in it. The tests beside the mutated file run first, then all, until one fails. Work is
kept in the folder of --work, not in the repository.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.mutants.edits import STORED, NotFoundError, apply, stored
from validation import ROOT

COMPILED = ("*.cubin", "*.sass.json")  # the compilers' part of the cache
LIMIT_S = 1800.0  # the suite takes less; a mutant that makes it longer is found, too
FOUND, BY_EXHAUSTIVE, MISSED = "found by the fast suite", "only by the exhaustive", "missed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("numbers", nargs="*", type=int, help="of mutants; all if left out")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "mutants")
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--beside", action="store_true", help="run only the tests beside the file")
    parser.add_argument("--processes", type=int, default=1, help="number of mutants at a time")
    parser.add_argument("--file", type=Path, default=STORED, help="the list of mutants")
    options = parser.parse_args()
    work = options.work.resolve()
    mutants = stored(options.file)
    chosen = options.numbers or [n for n, each in enumerate(mutants) if not each.equivalent]
    if not (work / "compiled").exists():
        fresh(work, work / "compiled")
        tests_fail(work, ["--maxfail=99", "-rfE"], without=[])
        keep_compiled(work)
    counts = defaultdict(Counter)

    def tried(number):
        begin = time.monotonic()
        verdict = verdict_on(work, number, mutants[number], options)
        print(f"{number} {verdict} {time.monotonic() - begin:.0f} s {mutants[number]}", flush=True)
        return mutants[number], verdict

    with ThreadPoolExecutor(options.processes) as pool:
        for mutant, verdict in pool.map(tried, chosen):
            counts[mutant.package, mutant.language][verdict] += 1
    print(table(counts))
    return 0


def verdict_on(work, number, mutant, options):
    own = work / str(number)
    tree = fresh(own, work / "compiled")
    try:
        near = beside(apply(tree, mutant).relative_to(tree))
    except NotFoundError:
        return "not found"
    if mutant.language == "c" and not built(tree):
        return "not built"
    one_process = ["-n", "0"] if options.processes > 1 else []
    fail = partial(tests_fail, own, without=left_out(work))
    runs = [[near]] if near else []
    runs += [] if options.beside else [[]]
    if any(fail([*one_process, *which]) for which in runs):
        verdict = FOUND
    elif options.exhaustive and fail([*one_process, "-m", "exhaustive"]):
        verdict = BY_EXHAUSTIVE
    else:
        verdict = MISSED
    for folder in (tree, own / "cache"):  # the log of pytest stays
        shutil.rmtree(folder)
    return verdict


def beside(file):
    """The folder of tests that mirrors a file of the product, or the nearest above it."""
    folders = (Path("tests") / folder for folder in file.parents)
    found = next(str(folder) for folder in folders if (ROOT / folder).is_dir())
    return "" if found == "tests" else found


def fresh(work, compiled):
    """A copy of what git knows of, with built libraries, and a cache of compiled code alone."""
    tree, cache = work / "tree", work / "cache"
    for folder in (tree, cache):
        shutil.rmtree(folder, ignore_errors=True)
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    libraries = (str(path.relative_to(ROOT)) for path in ROOT.glob("[at]*/**/*.so"))
    for name in (*filter(None, listed.split("\0")), *libraries):
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    for command in (["git", "init", "-q"], ["git", "add", "-A"]):  # some tests ask git
        subprocess.run(command, cwd=tree, check=True)
    shutil.copytree(compiled, cache, copy_function=os.link) if compiled.exists() else cache.mkdir()
    return tree


def keep_compiled(work):
    (work / "compiled").mkdir()
    failed = re.findall(
        r"^(?:FAILED|ERROR) (.+?)(?: - |$)", (work / "pytest.log").read_text(), re.M
    )
    (work / "failed.txt").write_text("\n".join(failed), encoding="utf-8")
    for pattern in COMPILED:
        for path in (work / "cache").glob(pattern):
            shutil.copy2(path, work / "compiled" / path.name)


def built(tree):
    command = [sys.executable, "-m", "toolkit.native"]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    return subprocess.run(command, cwd=tree, env=environment, check=False).returncode == 0


def left_out(work):
    """Arguments of pytest that leave out the tests, and the files, that failed without a mutant."""
    names = (work / "failed.txt").read_text("utf-8").splitlines()
    return [f"--{'deselect' if '::' in name else 'ignore'}={name}" for name in names]


def tests_fail(work, arguments, without):
    """True if tests fail, or do not end."""
    environment = os.environ | {
        "PYTHONPATH": str(work / "tree"),
        "GEMM_LADDER_CACHE": str(work / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=short", "--hypothesis-seed=0"]
    command += ["-p", "no:cacheprovider", "--ignore=tests/mutants", *arguments, *without]
    with (work / "pytest.log").open("a", encoding="utf-8") as log:
        try:
            done = subprocess.run(
                command, cwd=work / "tree", env=environment, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return True
    return done.returncode not in (0, 5)  # 5: nothing was selected


def table(counts):
    """The verdicts per package and language, as Markdown."""
    verdicts = sorted({verdict for row in counts.values() for verdict in row})
    lines = [["package", "language", "mutants", *verdicts], ["---"] * (3 + len(verdicts))]
    for (package, language), row in counts.items():
        lines.append([package, language, str(row.total()), *(str(row[v]) for v in verdicts)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
