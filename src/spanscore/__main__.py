"""`python -m spanscore` is the command `spanscore`."""

import sys

from spanscore.cli import main

if __name__ == "__main__":
    sys.exit(main())
