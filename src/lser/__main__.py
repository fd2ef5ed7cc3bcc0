"""``python -m lser``."""

import sys

from lser.cli import main

if __name__ == "__main__":
    sys.exit(main())
