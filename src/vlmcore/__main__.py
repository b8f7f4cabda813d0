"""``python -m vlmcore``: the same command as ``vlmcore``."""

import sys

from vlmcore.cli import main

if __name__ == "__main__":
    sys.exit(main())
