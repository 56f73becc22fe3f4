"""`python -m toolkit`."""

import sys

try:
    from toolkit.cli import main

    main()
except KeyboardInterrupt:  # while the commands were imported
    sys.exit("error: interrupted")
