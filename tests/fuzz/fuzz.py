"""A coverage-guided fuzzer on everything that takes input from anywhere.

    pip install atheris
    python tests/fuzz/fuzz.py            # 100,000 cases, shared among the targets
    python tests/fuzz/fuzz.py --cases 20000 operands launch

Every target runs in a process of its own (atheris, which is libFuzzer, never returns). A case that
raises is printed in Base64, with its traceback; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

CASES = 100_000
# Of the cases: what takes longer gets fewer.
SHARES = {
    "stored_text": 20,
    "stored_document": 4,
    "stored_launch": 4,
    "report": 0.1,
    "disassembly": 8,
    "operands": 36,
    "machine_code": 8,
    "launch": 18,
    "command_line": 2,
}


def main() -> int:
    """Run each target in a child; 1 where one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(SHARES)}")
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        fuzz(options.only, options.cases)
    chosen = options.targets or list(SHARES)
    share = options.cases / sum(SHARES[name] for name in chosen)
    failed = [name for name in chosen if not ran(name, max(1, round(share * SHARES[name])))]
    print(f"failed: {', '.join(failed)}" if failed else "no target failed")
    return int(bool(failed))


def ran(name: str, cases: int) -> bool:
    """Whether a target took so many cases without an exception."""
    print(f"{name}: {cases:,} cases", flush=True)
    command = [sys.executable, __file__, "--only", name, "--cases", str(cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-4000:], done.stderr[-4000:])
    else:
        last = [line for line in done.stderr.splitlines() if "cov:" in line or "Done" in line][-2:]
        print("  " + "\n  ".join(last), flush=True)
    return not done.returncode


def fuzz(name: str, cases: int) -> None:
    """Let atheris loose on one target; it ends the process."""
    import atheris

    with atheris.instrument_imports(include=["analysis", "toolkit", "reports"]):
        import targets

    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(targets.seeds(name)):
            (Path(folder) / str(number)).write_bytes(seed)
        # what failed is printed whole, in Base64: no file is left behind
        settings = [
            f"-artifact_prefix={folder}/",
            f"-runs={cases}",
            "-max_len=4096",
            "-timeout=60",
            "-rss_limit_mb=8192",
        ]
        atheris.Setup([sys.argv[0], *settings, folder], targets.TARGETS[name])
        atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
