"""Tests of `host_facts`, `package_facts`, `checkpoint_files` and `server_facts`."""

from __future__ import annotations

import hashlib
import os
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifact_cases import identity
from vlmcore.errors import ArtifactError, MissingDependencyError
from vlmcore.lab import host_facts, package_facts
from vlmcore.lab.checkpoint_files import find_checkpoint, revision_of
from vlmcore.lab.host_facts import find_devices, find_host
from vlmcore.lab.identity import PackageSource
from vlmcore.lab.package_facts import commit_of, find_package, find_versions
from vlmcore.lab.server_facts import server_of
from vlmcore.limits import ArtifactLimits
from vlmcore.secrets import Secret
from vlmcore.vlm.devices import Device


def linux(folder: Path, **files: str) -> Path:
    """Make the files of a system."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_the_processor_is_named_as_its_maker_calls_it(tmp_path: Path) -> None:
    """
    Spaces are put right, since makers fill up with them.
    """
    root = linux(tmp_path, proc__cpuinfo="flags : x\nmodel name\t: A  Processor   @ 3GHz\n")
    found, reasons = find_host([], root=root)
    assert "A Processor @ 3GHz" == found.processor
    assert {} == reasons


def test_what_a_container_may_use_is_counted_and_not_what_its_host_has(tmp_path: Path) -> None:
    """
    A quota of one and a half processors is at most two cores.
    """
    root = linux(
        tmp_path,
        proc__self__cgroup="0::/box/inner\n",
        sys__fs__cgroup__box__cpu_dot_max="100000 100000\n",
        sys__fs__cgroup__box__inner__cpu_dot_max="max 100000\n",
    )
    assert 1 == find_host([], root=root)[0].cores


@pytest.mark.parametrize("quota", ["", "max", "max 100000", "0 0", "x y", "-1 100000"])
def test_a_quota_that_is_none_is_passed_over(tmp_path: Path, quota: str) -> None:
    """
    Then the cores of this process are counted.
    """
    root = linux(tmp_path, proc__self__cgroup="0::/\n", sys__fs__cgroup__cpu_dot_max=quota)
    assert find_host([], root=tmp_path / "none")[0].cores == find_host([], root=root)[0].cores


def test_what_the_system_does_not_tell_is_unknown_with_a_reason(tmp_path: Path) -> None:
    """
    The reasons fit into an identity.
    """
    found, reasons = find_host(None, root=tmp_path)
    assert (None, None) == (found.processor, found.accelerators)
    assert {"host.processor", "host.accelerators"} == {*reasons}
    assert reasons == identity(host=found, unknown=reasons).unknown


def test_devices_are_kept_with_their_memory() -> None:
    """
    As PyTorch names them.
    """
    device = Device(name="cuda:0", label="NVIDIA H200", total_bytes=150 << 30, free_bytes=None)
    (found,) = find_host([device])[0].accelerators or ()
    assert ("NVIDIA H200", 150 << 30) == (found.name, found.memory_bytes)


def test_without_pytorch_nobody_looked_at_devices() -> None:
    """
    That is not known, and not none.
    """
    missing = MissingDependencyError("torch", "local")
    with mock.patch.object(host_facts, "accelerators", side_effect=missing):
        assert find_devices() is None


def installed(direct_url: str | None) -> Any:
    """Make what the metadata of an installed package says."""
    found = mock.Mock(spec=metadata.Distribution)
    found.version = "0.7"
    found.read_text.return_value = direct_url
    return mock.patch.object(package_facts, "distribution", return_value=found)


@pytest.mark.parametrize(
    "direct_url", [None, "", "null", "{", "[]", '{"url": "file:///a.whl", "archive_info": {}}']
)
def test_a_release_is_known_by_its_version(direct_url: str | None) -> None:
    """
    From an index, or a wheel.
    """
    with installed(direct_url):
        found, reasons = find_package("x")
    assert ("0.7", PackageSource.RELEASE, None, {}) == (
        found.version,
        found.source,
        found.commit,
        reasons,
    )


def test_what_pip_took_from_a_repository_has_a_commit() -> None:
    """
    PEP 610 says which.
    """
    said = '{"url": "https://me:x@h/r", "vcs_info": {"vcs": "git", "commit_id": "abc"}}'
    with installed(said):
        found, _ = find_package("x")
    assert (PackageSource.REPOSITORY, "abc", False) == (
        found.source,
        found.commit,
        found.has_changes,
    )


def git(folder: Path, *arguments: str) -> None:
    """Run git in *folder*, without what a person has set up."""
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def test_a_working_copy_says_its_commit_and_whether_there_is_more(tmp_path: Path) -> None:
    """
    Of git itself; a folder inside of another repository is none.
    """
    git(tmp_path, "init", "-q")
    assert commit_of(tmp_path) is None, "no commit yet"
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-q", "-m", "a")
    commit, has_changes = commit_of(tmp_path) or ("", None)
    assert (40, False) == (len(commit), has_changes)
    (tmp_path / "b").write_text("2")
    assert (commit, True) == commit_of(tmp_path)
    (tmp_path / "inner").mkdir()
    assert commit_of(tmp_path / "inner") is None
    url = f'{{"url": "{tmp_path.as_uri()}", "dir_info": {{"editable": true}}}}'
    with installed(url):
        found, reasons = find_package("x")
    assert (PackageSource.FOLDER, commit, True, {}) == (
        found.source,
        found.commit,
        found.has_changes,
        reasons,
    )


def test_without_git_a_working_copy_is_unknown_with_a_reason(tmp_path: Path) -> None:
    """
    And so is a folder that is gone.
    """
    with installed(f'{{"url": "{(tmp_path / "gone").as_uri()}", "dir_info": {{}}}}'):
        found, reasons = find_package("x")
    assert (None, None) == (found.commit, found.has_changes)
    assert reasons == identity(package=found, unknown=reasons).unknown
    with mock.patch("subprocess.run", side_effect=FileNotFoundError("git")):
        assert commit_of(tmp_path) is None
    with mock.patch("subprocess.run", side_effect=subprocess.TimeoutExpired("git", 10)):
        assert commit_of(tmp_path) is None


def test_a_bare_checkout_that_is_not_installed_is_a_folder() -> None:
    """
    As when the tests run from the source alone.
    """
    gone = metadata.PackageNotFoundError("vlmcore")
    with mock.patch.object(package_facts, "distribution", side_effect=gone):
        assert PackageSource.FOLDER is find_package()[0].source


def test_versions_are_those_of_what_is_installed() -> None:
    """
    What is not there is not listed.
    """
    assert {"numpy": metadata.version("numpy")} == find_versions(["numpy", "nobody-made-this"])
    assert "torch" in package_facts.RELEVANT


def checkpoint(folder: Path) -> Path:
    """Make a checkpoint as the cache of a hub holds it: links to files elsewhere."""
    blob = folder / "blobs/1"
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"weights")
    snapshot = folder / "snapshots" / ("ab" * 20)
    (snapshot / "sub").mkdir(parents=True)
    (snapshot / "model.safetensors").symlink_to(blob)
    (snapshot / "sub/config.json").write_bytes(b"{}")
    (snapshot / ".hidden").write_bytes(b"x")
    (snapshot / ".cache").mkdir()
    (snapshot / ".cache/x").write_bytes(b"x")
    return snapshot


def test_every_file_of_a_checkpoint_is_digested_and_its_revision_read(tmp_path: Path) -> None:
    """
    Links are followed, as the cache of the hub is made of them; hidden files are left out.
    """
    found = find_checkpoint("a/b", checkpoint(tmp_path))
    assert "ab" * 20 == found.revision
    assert [
        ("model.safetensors", 7, hashlib.sha256(b"weights").hexdigest()),
        ("sub/config.json", 2, hashlib.sha256(b"{}").hexdigest()),
    ] == [(file.name, file.size_bytes, file.sha256) for file in found.files or ()]


def test_files_that_cannot_be_digested_are_an_error_and_not_left_away(tmp_path: Path) -> None:
    """
    A link into nothing, a named pipe, a folder without files, one that is not there, too many.
    """
    snapshot = checkpoint(tmp_path)
    (snapshot / ".cache/empty").mkdir()
    with pytest.raises(ArtifactError, match="max_files: got more than 1"):
        find_checkpoint("a/b", snapshot, limits=ArtifactLimits(max_files=1))
    (snapshot / "lost").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ArtifactError, match="lost: is no regular file"):
        find_checkpoint("a/b", snapshot)
    (snapshot / "lost").unlink()
    os.mkfifo(snapshot / "pipe")
    with pytest.raises(ArtifactError, match="pipe: is no regular file"):
        find_checkpoint("a/b", snapshot)
    with pytest.raises(ArtifactError, match="holds no files"):
        find_checkpoint("a/b", snapshot / ".cache/empty")
    with pytest.raises(ArtifactError, match="Not a directory"):
        find_checkpoint("a/b", snapshot / ".hidden")
    with pytest.raises(ArtifactError, match="does not exist"):
        find_checkpoint("a/b", tmp_path / "none")


@pytest.mark.parametrize("path", ["", "/", "snapshots", "/a/snapshots/main", "/a/b/" + "0" * 40])
def test_a_path_that_is_no_snapshot_has_no_revision(path: str) -> None:
    """
    A branch is none: it moves.
    """
    assert revision_of(path) is None


def test_a_server_is_kept_as_it_tells_of_itself() -> None:
    """
    Its address without secrets, its version and its models.
    """
    server = server_of(
        "http://me:secret@127.0.0.1:30000/v1?key=secret",
        version={"version": "0.5.10"},
        models={"object": "list", "data": [{"id": "a/b", "created": 1}, {"id": "c"}]},
        metrics="# HELP x\nx 1\n",
    )
    assert ("http://127.0.0.1:30000/v1", "0.5.10", ("a/b", "c"), "# HELP x\nx 1\n") == (
        server.address,
        server.version,
        server.models,
        server.metrics,
    )


def test_a_token_that_a_server_repeats_is_not_kept() -> None:
    """
    In its version, its models, its metrics.
    """
    token = Secret("sekret")
    server = server_of(
        "http://h/sekret",
        version="v sekret",
        models={"data": [{"id": "sekret"}]},
        metrics="key sekret\nx 1\n",
        secrets=(token,),
    )
    assert "sekret" not in repr(server) + (server.metrics or "")
    assert "key [REDACTED]\nx 1\n" == server.metrics


ANSWERS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("\ud800"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["version", "data", "id", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(ANSWERS, ANSWERS, ANSWERS)
def test_whatever_a_server_answers_is_read_or_unknown(
    version: Any, models: Any, metrics: Any
) -> None:
    """
    An answer that cannot be understood is no answer, and no error.
    """
    server = server_of("http://h/v1", version=version, models=models, metrics=metrics)
    assert "http://h/v1" == server.address


def test_an_answer_that_is_endless_is_cut() -> None:
    """
    A megabyte of metrics is enough.
    """
    server = server_of("http://h", version="1" * 5000, metrics="x" * (3 << 20))
    assert (1024, 1 << 20) == (len(server.version or ""), len(server.metrics or ""))
