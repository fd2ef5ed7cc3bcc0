"""Print the comparison of the named platforms; the exit code says whether all agree.

Each platform is a module of this package with ``compare(seed=...)``, which returns rows of policy,
metric, ours, original and z. A row agrees when |z| < 4, which chance alone breaks once in 16,000
comparisons; comparisons on the same draws have z = 0 or infinity.
"""

import argparse
import importlib
import secrets
import sys

THRESHOLD = 4.0
PLATFORMS = ("recsim", "recogym", "virtual_taobao")


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(prog="parity.run", description=__doc__)
    parser.add_argument("platform", nargs="*", default=PLATFORMS)
    parser.add_argument("--seed", type=int, default=None, help="drawn when not given")
    arguments = parser.parse_args()
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    failures = 0
    for platform in arguments.platform:
        rows = importlib.import_module(f"parity.{platform}").compare(seed=seed)
        sys.stdout.write(f"\n{platform}, seed {seed}\n")
        for row in rows:
            agrees = abs(row["z"]) < THRESHOLD
            failures += not agrees
            sys.stdout.write(
                f"{'ok  ' if agrees else 'FAIL'} {row['policy']:45} {row['metric']:45} "
                f"ours {row['ours']:12.5g}  original {row['original']:12.5g}  z {row['z']:+.2f}\n"
            )
        sys.stdout.write(
            f"{len(rows)} comparisons, largest |z| {max(abs(r['z']) for r in rows):.2f}\n"
        )
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
