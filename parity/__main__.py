"""Set up ``.venv-parity`` with the original packages, then compare every platform.

RecSim and RecoGym run in that environment, beside ours; VirtualTaobao's reference needs torch and
runs in the environment that started this. ``python -m parity record FOLDER`` writes a small golden
set of the originals' numbers instead, the one that tests use where no larger one is at hand.
"""

import fcntl
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv-parity"
ORIGINALS = ("recsim==0.2.4", "recogym==0.1.3.0")
OURS = ["numpy", "numba", "gymnasium", "lazy-loader"]  # what our simulators import
NEEDED = [*OURS, "absl-py", "gin-config", "six", "scipy", "pandas", "tqdm"]


def environment() -> Path:
    """The Python of ``.venv-parity``, made on first use; one process makes it, others wait."""
    python, done = FOLDER / "bin" / "python", FOLDER / ".installed"
    content = " ".join([*NEEDED, *ORIGINALS])  # an environment made for other packages is made anew
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.is_file() and done.read_text() == content and (FOLDER / "pyvenv.cfg").is_file():
            return python
        venv.create(FOLDER, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "-q"]
        inside = os.environ | {"PIP_REQUIRE_VIRTUALENV": "1"}  # never into the Python it came from
        subprocess.run([*install, *NEEDED], check=True, env=inside)
        # without dependencies: they ask for TensorFlow and dopamine, which nothing here runs
        subprocess.run([*install, "--no-deps", *ORIGINALS], check=True, env=inside)
        done.write_text(content)
    return python


def _work(platforms: tuple[str, ...]) -> list[str]:
    """The module to run on `platforms` and its arguments."""
    if sys.argv[1:2] == ["record"]:
        return ["parity.golden", sys.argv[2], *platforms]
    return ["parity.run", *platforms, *sys.argv[1:]]


def main() -> int:
    """Run the comparisons; not 0 if one of them disagrees. Or record."""
    if sys.argv[1:2] == ["record"] and len(sys.argv) != 3:
        sys.stderr.write("usage: python -m parity record FOLDER\n")
        return 2
    paths = {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    codes = [
        subprocess.run(
            [str(python), "-m", *_work(platforms)],
            cwd=ROOT,
            env=os.environ | paths,
            check=False,
        ).returncode
        for python, platforms in (
            (environment(), ("recsim", "recogym")),
            (Path(sys.executable), ("virtual_taobao",)),
        )
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
