"""`python -m spanscore` is the command `spanscore`."""

import sys

if __name__ == "__main__":
    try:
        from spanscore.cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(main())
