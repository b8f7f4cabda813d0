"""
Every check that a person or a machine runs, under one name each; ``nox -l`` is the manual.

``nox`` alone runs what must pass before a change is sent: lint, types, imports, tests. Sessions
that need torch share one environment, ``.nox/local``, because torch is large: run those one at a
time. Versions are pinned in ``constraints/``; ``nox -s pins`` moves them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nox

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.error_on_external_run = True

PYPROJECT = nox.project.load_toml("pyproject.toml")
PINS = "constraints/dev.txt"
LOCAL = Path(".nox", "local").absolute()
ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # two test workers on two cores
KEPT = {"PYTHONDONTWRITEBYTECODE": ""}  # hundreds of processes start, and none compiles it all anew
MUTMUT = "mutmut==3.8.1"  # the list of mutants that change nothing is written in its words
LEROBOT_WARNS = ("-W", "ignore::FutureWarning")  # it uses what torch will not have for ever
LEROBOT_TESTS = "tests/vlmcore_robotics/adapters"
DATASET_TESTS = "tests/vlmcore_robotics/datasets/test_lerobot_itself.py"
LEROBOT_NEEDS = (
    "accelerate",
    "datasets",
    "deepdiff",
    "diffusers==0.35.2",
    "draccus==0.10.0",
    "einops",
    "gymnasium",
    "huggingface-hub<0.36",
    "imageio",
    "jsonlines",
    "opencv-python-headless",
    "pandas",
    "pyserial",
    "requests",
    "safetensors",
    "termcolor",
    "tqdm",
)
TORCH_BESIDE = ("torchvision", "torchaudio")
COMFY_PINS = "constraints/comfy.txt"  # its own needs, but for the torch that everything is run with
ATHERIS = "atheris==3.0.0"
AXE = "axe-core@4.14.1"
FLASHPACK = "flashpack==0.4.5"  # the golden files are written by it
SAMPLE = "src/vlmcore/embedded/samples/scene-1.png"


def requirements(*groups: str, extras: str | None) -> tuple[str, ...]:
    """List the requirements of *groups*, and this package with *extras* unless that is None."""
    wanted = nox.project.dependency_groups(PYPROJECT, *groups) if groups else ()
    return wanted if extras is None else ("-e", f".[{extras}]" if extras else ".", *wanted)


def install(session: nox.Session, *groups: str, extras: str | None = "", pins: str = PINS) -> None:
    """Install into the session's own environment, as pinned."""
    session.install("-c", pins, *requirements(*groups, extras=extras))


def python_of(environment: Path) -> Path:
    """Say where the Python of an environment is, made or not."""
    return environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def local(session: nox.Session, *groups: str, extras: str = "local") -> str:
    """Install into the environment with torch, made if it is not there; return its Python."""
    python = str(python_of(LOCAL))
    if not Path(python).exists():
        session.log(f"Making {LOCAL.name}, the environment with torch: this takes a few minutes.")
        session.run(sys.executable, "-m", "venv", str(LOCAL))
    wanted = requirements(*groups, extras=extras)
    session.run(python, "-m", "pip", "install", "-q", "-c", PINS, *wanted)
    return python


@nox.session(default=False, venv_backend="none")
def demo(session: nox.Session) -> None:
    """Describe a drawn scene with the embedded model, token by token; needs no model hub."""
    python = local(session)
    images = session.posargs or [SAMPLE]
    session.run(python, "-m", "vlmcore", "describe", *images, env={"HF_HUB_OFFLINE": "1"})


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, formatting and spelling."""
    install(session, "lint", extras=None)
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")
    session.run("codespell")


@nox.session(venv_backend="none")
def types(session: nox.Session) -> None:
    """Check types strictly, as a user's checker sees them."""
    python = local(session, "types", extras="local,testing")
    trees = session.posargs or ["src", "examples", "tests/typing", "noxfile.py"]
    session.run(python, "-m", "mypy", *trees)


@nox.session
def imports(session: nox.Session) -> None:
    """Check that nothing imports upwards and that frameworks stay behind their doors."""
    install(session, "imports")
    session.run("lint-imports", *session.posargs)


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run every test, on the Python that runs nox."""
    python = local(session, "tests", extras="local,testing")
    # Most of the time of most tests of clients and servers is spent waiting, on purpose. Neighbours
    # share models and servers, so that each worker begins with a quarter, and then takes of others.
    workers = [] if session.posargs else ["-n", "4", "--dist", "worksteal"]
    session.run(python, "-m", "pytest", *workers, *session.posargs, env=ONE_THREAD | KEPT)


@nox.session(python=["3.10", "3.13"], default=False)
def tests_bare(session: nox.Session) -> None:
    """Run the tests that need no torch, on the oldest and the newest Python."""
    install(session, "tests", extras="testing")
    session.install("-c", PINS, "pillow")
    session.run("pytest", *session.posargs)


@nox.session(default=False)
def transformers4(session: nox.Session) -> None:
    """Run the tests of the torch parts with the oldest supported transformers."""
    install(session, "tests", extras="local,testing", pins="constraints/transformers4.txt")
    only = session.posargs or ["tests/vlmcore", "-k", "torch"]
    session.run("pytest", "-n", "2", *only, env=ONE_THREAD)


@nox.session(default=False, venv_backend="none")
def servers(session: nox.Session) -> None:
    """Ask the embedded model behind the real server of transformers, over loopback."""
    python = local(session, "tests", extras="local,remote,testing")
    wanted = ("accelerate", "fastapi", "openai", "pydantic", "python-multipart")
    session.run(python, "-m", "pip", "install", "-q", "-c", PINS, *wanted)
    test = "tests/vlmcore/vlm/remote/test_transformers_serve_torch.py"
    session.run(python, "-m", "pytest", test, *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def comfy(session: nox.Session) -> None:
    """Run the nodes and every example graph in a real ComfyUI, whose checkout COMFYUI_DIR names."""
    checkout = os.environ.get("COMFYUI_DIR")
    if not checkout:
        session.skip("needs COMFYUI_DIR, a checkout of ComfyUI")
    wanted = Path(checkout, "requirements.txt").read_text(encoding="utf-8").split("\n")
    needs = [line for line in wanted if line.strip() not in (*TORCH_BESIDE, "torch")]
    requirements_of_comfyui = Path(session.create_tmp(), "requirements.txt")
    requirements_of_comfyui.write_text("\n".join(needs), encoding="utf-8")
    session.install("-c", PINS, "torch")
    session.install("-c", COMFY_PINS, "-r", str(requirements_of_comfyui))
    install(session, "tests", extras="comfy,local,server,audio,structure,weights,jobs,testing")
    # Some of its needs bring them, for another build of torch; our tests have stand-ins.
    session.run("pip", "uninstall", "-q", "-y", *TORCH_BESIDE)
    tests = ("tests/vlmcore_comfy/test_in_comfyui.py", "tests/vlmcore_comfy/test_page.py")
    session.run("pytest", *tests, *session.posargs, env={"COMFYUI_DIR": checkout, **KEPT})


@nox.session(default=False)
def rerun(session: nox.Session) -> None:
    """Export an episode to Rerun, and read the recording back; no other session installs it."""
    install(session, "tests", extras="rerun,testing")
    session.run("pytest", "tests/vlmcore/rollout/test_episode_rerun.py", *session.posargs)


@nox.session(default=False)
def lab_report(session: nox.Session) -> None:
    """Open a report of the speed lab in chromium, and try it with axe-core, which npm brings."""
    for tool in ("chromium", "npm"):
        if shutil.which(tool) is None:
            session.skip(f"needs {tool} on the PATH")
    install(session, "tests", extras="lab,testing")
    with session.chdir(session.create_tmp()):
        session.run("npm", "pack", "--silent", AXE, external=True)
        session.run("tar", "-xzf", f"{AXE.replace('@', '-')}.tgz", external=True)
        axe = str(Path("package/axe.min.js").resolve())
    session.run("pytest", "tests/vlmcore/lab/test_report_browser.py", env={"AXE_CORE": axe})


@nox.session(default=False)
def ray(session: nox.Session) -> None:
    """Run captioning jobs on a Ray of this machine, and beside it; no other session installs it."""
    install(session, "tests", extras="local,ray,testing")
    tests = ("tests/vlmcore/jobs/test_ray.py", "tests/vlmcore/cli/test_caption_ray.py")
    session.run("pytest", *tests, *session.posargs, env=ONE_THREAD)


@nox.session(default=False, venv_backend="none")
def weights_peers(session: nox.Session) -> None:
    """Exchange packs and safetensors with flashpack and safetensors themselves."""
    python = local(session, "tests", extras="local,weights,testing")
    session.run(python, "-m", "pip", "install", "-q", "-c", PINS, FLASHPACK)
    session.run(
        python, "-m", "pytest", "tests/vlmcore/weights/test_peers_torch.py", *session.posargs
    )


@nox.session(default=False)
def openpi(session: nox.Session) -> None:
    """Ask our openpi server with the real openpi-client; no other session installs it."""
    install(session, "tests", extras="robotics,testing")
    session.install("dm-tree", "typing_extensions")
    session.install("--no-deps", "openpi-client==0.1.2")  # it pins NumPy below 2, and runs on 2
    session.run("pytest", "tests/vlmcore_robotics/servers/test_openpi_client.py", *session.posargs)


@nox.session(default=False)
def mujoco(session: nox.Session) -> None:
    """Drive a simulated arm over a policy server, and look at what it leaves; needs EGL."""
    install(session, "tests", extras="robotics,testing")
    session.install("gymnasium[mujoco]")  # large: no other session installs it
    draws = {"MUJOCO_GL": os.environ.get("MUJOCO_GL", "egl")}  # or osmesa; a screen is not needed
    session.run("pytest", "tests/examples", *session.posargs, env=draws)


@nox.session(default=False)
def schemathesis(session: nox.Session) -> None:
    """Hold the HTTP server to its OpenAPI document with the real schemathesis; two minutes."""
    install(session, "tests", extras="server,testing")
    session.install("schemathesis==4.32.5")
    session.run(
        "pytest", "tests/vlmcore_robotics/servers/test_http_schemathesis.py", *session.posargs
    )


@nox.session(python="3.11", default=False)
def lerobot(session: nox.Session) -> None:
    """Try policies and data sets of LeRobot 0.4, the last for Python 3.11, against itself."""
    session.install("torch==2.13.0", "numpy")
    # Installed alone, they leave this torch as it is; what they need of the rest follows.
    session.install("--no-deps", "torchvision==0.28.0", "lerobot==0.4.4")
    session.install(*LEROBOT_NEEDS, *requirements("tests", extras="robotics,dataset,testing"))
    tests = (LEROBOT_TESTS, DATASET_TESTS)
    session.run("pytest", *LEROBOT_WARNS, *tests, *session.posargs, env=ONE_THREAD)


@nox.session(python="3.12", default=False)
def lerobot06(session: nox.Session) -> None:
    """Try policies of LeRobot 0.6 against LeRobot itself; it brings 5 GB of CUDA."""
    wanted = ("torch==2.11.0", "torchvision==0.26.0", "lerobot[diffusion]==0.6.1")
    session.install(*wanted, *requirements("tests", extras="robotics,testing"))
    session.run("pytest", *LEROBOT_WARNS, LEROBOT_TESTS, *session.posargs, env=ONE_THREAD)


@nox.session(default=False, name="property", venv_backend="none")
def property_tests(session: nox.Session) -> None:
    """Run the property tests with many more examples."""
    python = local(session, "tests", extras="local,testing")
    session.run(
        python, "-m", "pytest", "-m", "hypothesis", "--hypothesis-profile", "long", *session.posargs
    )


@nox.session(default=False)
def fuzz(session: nox.Session) -> None:
    """Let a fuzzer look for messages that a decoder does not survive; ``-- SECONDS [NAME ...]``."""
    install(session, "tests", extras="robotics,testing")
    session.install(ATHERIS)
    seconds, *names = session.posargs or ["600"]
    harness = "tests/fuzz/fuzz_decoder.py"
    # What atheris says of each import goes elsewhere, and is no name.
    listed = session.run("python", harness, silent=True, stderr=subprocess.DEVNULL)
    folder = Path(session.create_tmp())
    for name in names or str(listed).split():
        (folder / "found" / name).mkdir(parents=True, exist_ok=True)
        session.run(
            "python",
            harness,
            name,
            str(folder / "learned" / name),
            f"-max_total_time={seconds}",
            f"-artifact_prefix={folder / 'found' / name}/",
            *("-max_len=8192", "-rss_limit_mb=1024", "-timeout=10"),
            env=ONE_THREAD,
        )


@nox.session(default=False)
def mutants(session: nox.Session) -> None:
    """Change the safety gate in every small way, and fail where no test minds; an hour."""
    install(session, "tests", extras="testing")
    session.install("-c", PINS, "pillow")
    session.install(MUTMUT)
    tree = Path(session.create_tmp(), "tree")
    shutil.rmtree(tree, ignore_errors=True)  # mutmut would keep results of other tests
    for name in ("src", "tests"):
        shutil.copytree(name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy("pyproject.toml", tree)
    session.chdir(tree)
    quick = {  # to load plugins and to compile the tests takes longer than most mutants live
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "_hypothesis_pytestplugin,pytest_socket",
        "PYTHONDONTWRITEBYTECODE": "",
    }
    session.run("mutmut", "run", "--max-children", "2", *session.posargs, env=quick | ONE_THREAD)
    if not session.posargs:
        session.run("python", "tests/mutation/check_survivors.py")


@nox.session(default=False, venv_backend="none")
def coverage(session: nox.Session) -> None:
    """Measure which lines and branches the tests reach."""
    python = local(session, "tests", extras="local,testing")
    session.run(python, "-m", "coverage", "erase")
    session.run(python, "-m", "coverage", "run", "-m", "pytest", *session.posargs)
    session.run(python, "-m", "coverage", "combine")
    session.run(python, "-m", "coverage", "report")


@nox.session(default=False, venv_backend="none")
def docs(session: nox.Session) -> None:
    """Build the documentation, run its notebook, and fail on any warning."""
    python = local(session, "docs", extras="local,testing")
    shutil.rmtree("docs/_build", ignore_errors=True)
    session.run(python, "-m", "sphinx", "-n", "-W", "--keep-going", "docs", "docs/_build/html")


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Build the sdist and the wheel, and import the wheel in an environment with no extra."""
    install(session, "build", extras=None)
    shutil.rmtree("dist", ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", "dist")
    built = sorted(str(path) for path in Path("dist").iterdir())
    wheel = next(path for path in built if path.endswith(".whl"))
    session.run("twine", "check", "--strict", *built)
    session.run("check-wheel-contents", wheel)

    bare = Path(session.create_tmp()) / "bare"
    shutil.rmtree(bare, ignore_errors=True)
    session.run("python", "-m", "venv", str(bare))
    python = str(python_of(bare))
    pinned = ["pip", "install", "-q", "-c", PINS, wheel]
    session.run(python, "-m", *pinned, external=True)
    session.run(python, "-I", "tests/wheel/check_installed.py", external=True)


@nox.session(default=False)
def bench_import(session: nox.Session) -> None:
    """Measure how long ``import vlmcore`` takes, against NumPy and attrs alone."""
    install(session)
    session.run("python", "bench/bench_import_time.py", *session.posargs)


@nox.session(default=False, venv_backend="none")
def caption_faults(session: nox.Session) -> None:
    """Kill a captioning job of 2,000 images at 20 random moments, and look what is left."""
    python = local(session)
    session.run(python, "tests/caption_faults.py", *session.posargs)


@nox.session(default=False, venv_backend="none")
def bench_gate(session: nox.Session) -> None:
    """Measure vetting beside NumPy and torch; fails over 40 us clean or 250 us clamped."""
    python = local(session)
    limits = ("--clean-at-most-us", "40", "--clamped-at-most-us", "250")
    session.run(python, "bench/bench_gate.py", *(session.posargs or limits))


@nox.session(default=False)
def bench_wire(session: nox.Session) -> None:
    """Measure all three policy protocols beside their peers; ``-- ROUNDS``, 20 unless given."""
    install(session, extras="server")
    session.install("-c", PINS, "dm-tree", "msgpack", "msgpack-numpy==0.4.8", "pyzmq")
    session.install("--no-deps", "openpi-client==0.1.2")  # it pins NumPy below 2, and runs on 2
    (rounds,) = session.posargs or ["20"]
    for name, most in (
        ("openpi", ("--at-most", "1.2")),  # 1.0 is wanted; the rest is the unrest of a machine
        ("groot", ("--at-most", "1.2")),
        ("http", ("--jpeg-at-most", "2.5", "--memory-at-most", "2")),
    ):
        session.run("python", f"bench/bench_{name}.py", "--rounds", rounds, *most)
    # Among all clients it is a matter of cores too, which they take.
    server = ("--requests", rounds, "--health-at-most-ms", "50", "--crowded-at-most-ms", "200")
    session.run("python", "bench/bench_http_server.py", *server)


@nox.session(default=False, venv_backend="none")
def bench_weights(session: nox.Session) -> None:
    """Measure loaders of weights beside ours; ``-- FOLDER GIGABYTES ROUNDS``, else 2 and 5."""
    python = local(session, extras="local,weights")
    peers = (FLASHPACK, "accelerate", "fastsafetensors==0.5", "runai-model-streamer==0.17")
    session.run(python, "-m", "pip", "install", "-q", "-c", PINS, *peers)
    usual = (session.create_tmp(), "2", "5")  # two checkpoints of so many gigabytes
    folder, gigabytes, rounds = (*session.posargs, *usual[len(session.posargs) :])
    session.run(python, "bench/weights/checkpoint.py", folder, "--gigabytes", gigabytes)
    session.run(python, "bench/weights/compare.py", folder, "--rounds", rounds)


@nox.session(default=False, tags=["gen"])
def regen(session: nox.Session) -> None:
    """Write the generated pages of the reference; ``-- --check`` only compares."""
    install(session)
    session.run("python", "docs/generate.py", *session.posargs)


@nox.session(default=False)
def changelog(session: nox.Session) -> None:
    """Show what the next release's notes say so far."""
    install(session, "changelog", extras=None)
    session.run("towncrier", "build", "--draft", "--version", "Unreleased", *session.posargs)


@nox.session(default=False)
def pins(session: nox.Session) -> None:
    """Resolve ``constraints/*.in`` for every supported Python; ``-- --upgrade`` moves the pins."""
    session.install("uv")
    groups = [word for group in PYPROJECT["dependency-groups"] for word in ("--group", group)]
    extras = ["--extra", "local", "--extra", "testing"]
    for name in ("dev", "transformers4"):
        sources = ["pyproject.toml", f"constraints/{name}.in", *extras, *groups]
        shape = ["--universal", "--python-version", "3.10", "--no-annotate", "--no-header", "-q"]
        target = ["--output-file", f"constraints/{name}.txt"]
        session.run("uv", "pip", "compile", *sources, *shape, *target, *session.posargs)
