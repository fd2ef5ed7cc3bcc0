"""Record the named platforms into a folder: ``python -m parity.golden FOLDER PLATFORM ...``."""

import importlib
import sys
from pathlib import Path


def main() -> int:
    """Record, and say what was written."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for platform in sys.argv[2:]:
        for path in importlib.import_module(f"parity.golden.{platform}").record(folder):
            sys.stdout.write(f"{path} {path.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
