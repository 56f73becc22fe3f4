"""`python -m toolkit`, and the command `gemm-ladder`."""

import sys

import toolkit

COMPILING = {"check", "profile", "simulate"}


def main() -> None:
    """Run the command line."""
    try:
        if hidden := toolkit.hidden_package():
            sys.exit(f"error: {hidden}")
        if COMPILING.intersection(sys.argv[1:2]) and "--watch" not in sys.argv:
            from toolkit.machine_code.compiler_process import start_compiler

            start_compiler()  # it is ready when the options are read
        from toolkit.cli.app import main

        main()
    except KeyboardInterrupt:  # while the commands were imported
        sys.exit("error: interrupted")


if __name__ == "__main__":
    main()
