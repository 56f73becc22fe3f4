"""`python -m toolkit`, and the command `gemm-ladder`."""

import sys

import toolkit


def main() -> None:
    """Run the command line."""
    try:
        if hidden := toolkit.hidden_package():
            sys.exit(f"error: {hidden}")
        from toolkit.cli.app import main

        main()
    except KeyboardInterrupt:  # while the commands were imported
        sys.exit("error: interrupted")


if __name__ == "__main__":
    main()
