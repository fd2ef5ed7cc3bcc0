"""Kernels are compiled once, again when a source that they are made of changes, and anywhere."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import lser
from lser import compiled
from lser.replay import sum_tree

PACKAGE = Path(lser.__file__).parent
FILES_OF = [path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py")]
MODULES = sorted(".".join(path.parts).removesuffix(".__init__") for path in FILES_OF)
# says how often Numba compiled in this process, and what the kernel computed
CALL = """
from numba.core import event
with event.install_recorder("numba:compile") as compilations:
    import caller
    print(caller.twice(3.0), sum(1 for _, e in compilations.buffer if e.is_start))
"""
# two modules of a copy of the package, one with a kernel that calls the other's, and a bystander
FILES = {
    "called.py": "from lser.compiled import kernel\n\n@kernel\ndef add(x, y):\n    return x + y\n",
    "caller.py": (
        "from lser.compiled import kernel\nfrom lser.called import add\n\n"
        "@kernel\ndef twice(x):\n    return add(x, x)\n"
    ),
    "bystander.py": "NUMBER = 1\n",
}


@pytest.fixture
def copy(tmp_path):
    """A folder with a package `lser` of a few modules, `compiled` among them."""
    package = tmp_path / "lser"
    package.mkdir()
    (package / "__init__.py").write_text('"""A small package."""\n')
    shutil.copy(PACKAGE / "compiled.py", package)
    for name, text in FILES.items():
        (package / name).write_text(text)
    return tmp_path


def run(folder: Path, code: str, **environment: str) -> str:
    """What `code` prints in a new process that imports from `folder`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=kept | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_a_kernel_is_compiled_again_when_a_kernel_that_it_calls_changes(copy):
    call = CALL.replace("import caller", "from lser import caller")
    first = run(copy, call)
    assert first.startswith("6.0 ")
    assert int(first.split()[1]) > 0
    assert run(copy, call) == "6.0 0", "the second process loads the cached code"
    called = copy / "lser" / "called.py"
    called.write_text(called.read_text().replace("x + y", "x * y"))
    assert run(copy, call).startswith("9.0 ")


def test_a_kernel_is_not_compiled_again_when_other_sources_change(copy):
    call = CALL.replace("import caller", "from lser import caller, bystander")
    run(copy, call)
    (copy / "lser" / "bystander.py").write_text("NUMBER = 2\n")
    for file in (copy / "lser").glob("*.py"):
        os.utime(file, (1, 1))  # as a checkout or an installation does
    assert run(copy, call) == "6.0 0"


# a kernel inside of another, which allocates and may raise
INNER = """
import numpy as np
from lser.compiled import inner, kernel

@inner
def inside(x):
    if x < 0:
        raise ValueError("below zero")
    room = np.full(3, x)
    return room[0] + room[1]

@inner
def between(x):
    return 2 * inside(x)

@kernel
def first(x):
    return between(x) + inside(x)

@kernel
def second(x):
    return inside(x) + between(x)
"""
RAISE = """
from lser import nested
try:
    nested.second(-1.0)
except ValueError as error:
    print(error)
"""


def test_kernels_inside_of_kernels_are_cached_and_linked_into_others(copy):
    (copy / "lser" / "nested.py").write_text(INNER)
    use = CALL.replace("import caller", "from lser import nested")
    first, second = (use.replace("caller.twice", f"nested.{k}") for k in ("first", "second"))
    assert run(copy, first).startswith("18.0 ")
    assert run(copy, first) == "18.0 0"
    assert run(copy, second) == "18.0 1", "the inner ones come from the disk"
    assert run(copy, RAISE) == "below zero"


DRAW = """
import numpy as np
from numba.core import event
with event.install_recorder("numba:compile") as compilations:
    from lser.simulators.recsim.draws import make_keys
    keys = np.empty(1, np.uint64)
    make_keys(np.array([0.5]), keys)
    print(keys[0], sum(1 for _, e in compilations.buffer if e.is_start))
"""


def test_simulators_follow_their_sources_too(tmp_path):
    """The whole package: an edit of the mixing function, and one of another simulator."""
    shutil.copytree(PACKAGE, tmp_path / "lser", ignore=shutil.ignore_patterns("__pycache__"))
    before = run(tmp_path, DRAW).split()[0]
    other = tmp_path / "lser" / "simulators" / "bazaar" / "world.py"
    other.write_text(other.read_text() + "\n# edited\n")
    assert run(tmp_path, DRAW) == f"{before} 0"
    mixing = tmp_path / "lser" / "random.py"
    mixing.write_text(mixing.read_text().replace("np.uint64(27)", "np.uint64(26)"))
    assert run(tmp_path, DRAW).split()[0] != before


def test_kernels_outside_of_the_package_see_changes_in_it(copy):
    text = (copy / "lser" / "caller.py").read_text()
    (copy / "caller.py").write_text(text)
    assert run(copy, CALL).startswith("6.0 ")
    assert run(copy, CALL) == "6.0 0"
    called = copy / "lser" / "called.py"
    called.write_text(called.read_text().replace("x + y", "x * y"))
    assert run(copy, CALL).startswith("9.0 ")


def test_the_stamp_reaches_numbas_cache():
    """Numba has no public name for it: see that the private one still is what we think."""
    ours = sum_tree.__dict__["_draw"]._cache
    assert ours._cache_file._source_stamp == compiled.stamp("lser.replay.sum_tree")
    unchanged = numba.njit(cache=True)(sum_tree.__dict__["_draw"].py_func)._cache
    assert unchanged._cache_file._source_stamp == unchanged._impl.locator.get_source_stamp()


def parsed_imports(module: str) -> frozenset[str]:
    """The `lser` modules that a module imports, by Python's own parser."""
    found = set()
    path = PACKAGE.joinpath(*module.split(".")[1:])
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= parts & set(MODULES)
            if parts - set(MODULES):
                found.add(node.module)
    return frozenset(name for name in found if name.split(".")[0] == "lser")


def test_imports_are_read_as_python_reads_them():
    read = {module: compiled._imported(module) for module in MODULES}
    assert read == {module: parsed_imports(module) for module in MODULES}


def test_a_kernel_is_made_of_what_its_module_imports_through_others_too():
    module = "lser.simulators.recsim.interest_evolution.dynamics"
    assert compiled.sources_of(module) == {
        module,
        "lser.compiled",
        "lser.random",
        "lser.top_k",
        "lser.types",
    }


@pytest.mark.parametrize("flavour", ["kernel", "unordered_kernel", "relaxed_kernel"])
def test_every_flavour_sums_and_divides_by_zero_like_numpy(flavour):
    decorate = getattr(compiled, flavour)

    @decorate
    def ratio(values: np.ndarray, divisor: float) -> float:
        total = 0.0
        for i in range(values.size):
            total += values[i]
        return total / divisor

    values = np.arange(10.0)
    assert ratio(values, 2.0) == 22.5
    assert ratio(values, 0.0) == np.inf
    assert np.isnan(ratio(values * np.nan, 2.0))


def test_without_compilation_kernels_are_plain_functions(copy):
    code = "from lser import caller; print(caller.twice(3.0), type(caller.twice).__name__)"
    assert run(copy, code, NUMBA_DISABLE_JIT="1") == "6.0 function"


# what needs compiled code, and a call that compiles little
USES = {
    "replay": (
        "from lser.replay import PrioritizedReplay as P; import numpy as np\n"
        "m = P(10, 2, 1); m.extend(np.ones((4, 2)), np.ones((4, 1)), np.ones(4), "
        "np.ones((4, 2)), np.zeros(4, bool), np.zeros(4, bool)); print(len(m.sample(3).ids))"
    ),
    "agents": (
        "from lser.agents import DDPG; import numpy as np\n"
        "print(DDPG(2, -np.ones(1), np.ones(1), hidden=(8,)).act(np.ones((3, 2), 'f4')).shape[0])"
    ),
    "simulators": (
        "import gymnasium as gym, lser; lser.__version__\n"
        "env = gym.make_vec('lser/LongTermSatisfaction-v0', num_envs=3)\n"
        "env.reset(seed=0); print(len(env.step(env.action_space.sample())[1]))"
    ),
}


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
def test_a_damaged_cache_is_as_good_as_none(copy, ending):
    import_it = CALL.replace("import caller", "from lser import caller")
    first = run(copy, import_it)
    assert run(copy, import_it) == first.split()[0] + " 0"
    damaged = [path for path in copy.rglob("*") if path.suffix == ending]
    assert damaged
    for path in damaged:
        path.write_bytes(path.read_bytes()[:20] if ending == ".nbc" else b"")
    assert run(copy, import_it).split()[0] == first.split()[0]
    assert run(copy, import_it) == first.split()[0] + " 0"  # it was written anew


def test_a_full_disk_for_the_cache_does_no_harm(copy):
    full = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
from lser import caller
"""
    assert run(copy, f"{full}\nprint(caller.twice(3.0))", PYTHONDONTWRITEBYTECODE="1") == "6.0"


@pytest.mark.parametrize("part", USES)
def test_everything_runs_where_no_cache_can_be_written(tmp_path, part):
    """A file stands wherever Numba would make a folder: beside the sources and at home."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "lser", ignore=ignored)
    for folder in [p for p in (tmp_path / "lser").rglob("*") if p.is_dir()] + [tmp_path / "lser"]:
        (folder / "__pycache__").write_text("no folder")
    home = tmp_path / "home"
    home.write_text("no folder")
    heard = "import logging, sys; logging.basicConfig(stream=sys.stdout, format='%(message)s')"
    printed = run(
        tmp_path,
        f"{heard}\n{USES[part]}",
        HOME=str(home),
        XDG_CACHE_HOME=str(home),
        PYTHONDONTWRITEBYTECODE="1",
    )
    message, result = printed.splitlines()
    assert message.startswith("compiling with Numba at every start")
    assert "NUMBA_CACHE_DIR" in message
    assert result == "3"


def test_the_first_compilation_is_announced_once(copy):
    code = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(message)s")
from lser import caller
caller.twice(3.0), caller.twice(3)
"""
    assert run(copy, code) == "compiling a part with Numba: once for each part, then cached on disk"
    assert not run(copy, code), "nothing is compiled the second time"


def test_one_of_many_processes_does_not_announce_it(copy):
    code = """
import logging, multiprocessing, sys
logging.basicConfig(stream=sys.stdout, format="%(message)s")
from lser import caller
multiprocessing.parent_process = object
caller.twice(3.0)
"""
    assert run(copy, code) == ""


def test_an_edit_of_settings_compiles_no_memory_anew():
    kernels = [
        name
        for name in MODULES
        if name.startswith("lser.replay.")
        and re.search(rb"^@(kernel|inner|unordered_kernel)$", compiled._source(name) or b"", re.M)
    ]
    assert len(kernels) > 10
    settings = "lser.replay.memories.params"
    assert [name for name in kernels if settings in compiled.sources_of(name)] == []
