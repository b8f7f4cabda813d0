"""Tests of `vlmcore.lab.identity`, `targets`, `inputs` and `redacting`."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from artifact_cases import identity, media, server_target, target
from vlmcore.errors import ContractError
from vlmcore.lab.identity import Accelerator, Host, Package, PackageSource
from vlmcore.lab.inputs import Input, pixels_sha256
from vlmcore.lab.redacting import (
    address_without_secrets,
    options_without_secrets,
    values_without_secrets,
)
from vlmcore.lab.targets import Checkpoint, CheckpointFile, Server, TargetKind
from vlmcore.secrets import REDACTED, Secret

FILES = [CheckpointFile(name="a/b.json", size_bytes=0, sha256="0" * 64)]


def test_what_is_none_is_unknown_and_says_why() -> None:
    """
    A reason that was given, or else that nobody told; what is known needs none.
    """
    host = Host(system="Linux", machine="x86_64", python="CPython 3.11.2", cores=2)
    made = identity(host=host, unknown={"host.processor": "a container hides it"})
    assert {
        "host.processor": "a container hides it",
        "host.memory_bytes": "was not told",
        "host.accelerators": "was not told",
    } == made.unknown
    assert {} == identity().unknown
    assert made == pickle.loads(pickle.dumps(made))


def test_no_accelerators_are_known_to_be_none() -> None:
    """
    An empty list is not null: there are none.
    """
    host = attrs.evolve(identity().host, accelerators=[])
    assert {} == identity(host=host).unknown
    unsure = attrs.evolve(host, accelerators=[Accelerator(name="NPU")])
    assert ["host.accelerators[0].memory_bytes"] == [*identity(host=unsure).unknown]


def test_a_reason_for_what_is_known_is_refused() -> None:
    """
    It would contradict the value beside it.
    """
    with pytest.raises(ContractError, match=r"unknown: got why \['host.cores'\] are not known"):
        identity(unknown={"host.cores": "nobody knows"})


def test_a_release_has_no_commit_and_a_folder_without_one_is_unknown() -> None:
    """
    The version of a release says which code it is; that of a working copy does not.
    """
    release = Package(version="0.1", source=PackageSource.RELEASE)
    folder = Package(version="0.1", source=PackageSource.FOLDER)
    assert {} == identity(package=release).unknown
    assert ["package.commit", "package.has_changes"] == [*identity(package=folder).unknown]


def test_weights_are_known_by_their_files_or_not_at_all() -> None:
    """
    A folder has no revision; of what a server loads, a revision says what it should be.
    """
    folder = target(checkpoint=Checkpoint(model="mine", files=FILES))
    assert {} == identity(targets=[folder]).unknown
    served = server_target(checkpoint=Checkpoint(model="mine", revision="main"))
    assert ["targets[0].checkpoint.files"] == [*identity(targets=[served]).unknown]
    neither = target(checkpoint=Checkpoint(model="mine"))
    assert 2 == len(identity(targets=[neither]).unknown)


def test_a_server_without_a_version_is_unknown_and_one_without_metrics_is_not() -> None:
    """
    Metrics are kept if they are offered.
    """
    silent = server_target()
    silent = attrs.evolve(silent, server=Server(address="http://127.0.0.1:8000/v1"))
    assert ["targets[0].server.version", "targets[0].server.models"] == [
        *identity(targets=[silent]).unknown
    ]


@pytest.mark.parametrize(
    ("make", "fields", "field"),
    [
        (Package, {"version": "", "source": PackageSource.RELEASE}, "version"),
        (Package, {"version": "1", "source": "release"}, "source"),
        (
            Package,
            {"version": "1", "source": PackageSource.FOLDER, "has_changes": 1},
            "has_changes",
        ),
        (Host, {"system": "a\nb", "machine": "m", "python": "p"}, "system"),
        (Host, {"system": "a", "machine": "m", "python": "p", "cores": 0}, "cores"),
        (
            Host,
            {"system": "a", "machine": "m", "python": "p", "accelerators": ["GPU"]},
            r"accelerators\[0\]",
        ),
        (CheckpointFile, {"name": "a", "size_bytes": -1, "sha256": "0" * 64}, "size_bytes"),
        (CheckpointFile, {"name": "a", "size_bytes": 1, "sha256": "0" * 63}, "sha256"),
        (CheckpointFile, {"name": "a", "size_bytes": 1, "sha256": "A" * 64}, "sha256"),
        (Checkpoint, {"model": "a", "files": FILES[0]}, "files"),
        (Server, {"address": "http://me:secret@host"}, "address"),
        (Server, {"address": "http://host/v1?key=secret"}, "address"),
        (Server, {"address": "host:8000"}, "address"),
        (Server, {"address": "http://host", "models": "mine"}, "models"),
        (Server, {"address": "http://host", "models": [7]}, r"models\[0\]"),
        (target, {"options": {"api_key": "secret"}}, "options"),
        (target, {"options": {"flags": ["--token", "secret"]}}, "options"),
        (target, {"options": {"x": float("nan")}}, r"options\.x"),
        (target, {"kind": TargetKind.SERVER}, "server"),
        (server_target, {"server": None}, "server"),
        (identity, {"targets": []}, "targets"),
        (identity, {"targets": [target(), target()]}, "targets"),
        (identity, {"packages": {"numpy": 2}}, "packages"),
        (identity, {"host": None}, "host"),
        (media, {"height_px": 0}, "height_px"),
        (media, {"encoder": ""}, "sent_sha256"),
        (media, {"pixels_sha256": None}, "pixels_sha256"),
        (Input, {"target": "a", "case": "", "prompt_sha256": "0" * 64}, "case"),
    ],
)
def test_a_field_that_is_not_as_described_is_refused_without_showing_secrets(
    make: Any, fields: dict[str, Any], field: str
) -> None:
    """
    The error names the field.
    """
    fields = {**fields}
    if make is server_target:
        with pytest.raises(ContractError, match=f"^{field}"):
            attrs.evolve(server_target(), **fields)
        return
    with pytest.raises(ContractError, match=f"^{field}") as caught:
        make(**fields)
    assert "secret@" not in str(caught.value)
    assert "=secret" not in str(caught.value)


def test_pixels_of_another_shape_are_other_pixels() -> None:
    """
    The same bytes as 1 x 4 and as 4 x 1, as an image and as a video of one frame.
    """
    shapes = [(1, 4, 3), (4, 1, 3), (2, 2, 3), (1, 1, 4, 3), (1, 4, 1, 3), (4, 1, 1, 3)]
    assert 6 == len({pixels_sha256(np.zeros(shape, np.uint8)) for shape in shapes})


@given(
    arrays.arrays(
        np.uint8,
        arrays.array_shapes(min_dims=2, max_dims=2, max_side=5).map(lambda shape: (*shape, 3)),
    )
)
def test_pixels_are_the_same_in_whatever_memory(pixels: Any) -> None:
    """
    Turned twice, in another order, read-only: what is seen is digested.
    """
    digest = pixels_sha256(pixels)
    assert digest == pixels_sha256(np.asfortranarray(pixels))
    assert digest == pixels_sha256(np.rot90(np.rot90(pixels, 2), 2))
    changed = pixels.copy()
    changed[0, 0, 0] ^= 1
    assert digest != pixels_sha256(changed)


@pytest.mark.parametrize("pixels", [None, np.zeros((2, 2)), np.zeros((2, 2, 3)), [[[1, 2, 3]]]])
def test_what_are_no_pixels_is_refused(pixels: object) -> None:
    """
    Only what the image door gives.
    """
    with pytest.raises(ContractError, match="pixels: got"):
        pixels_sha256(pixels)


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("http://user:secret@host/v1", "http://host/v1"),
        ("https://host:8443/v1?api_key=secret#secret", "https://host:8443/v1"),
        ("http://secret@[::1]:30000", "http://[::1]:30000"),
        ("http://a:secret@b:secret@host/", "http://host/"),
        ("http://host/sk-secret123456/v1", f"http://host/{REDACTED}/v1"),
        ("http://[secret", REDACTED),
        ("user:secret@host", REDACTED),
        ("", REDACTED),
    ],
)
def test_an_address_is_kept_without_user_password_query_and_fragment(
    address: str, kept: str
) -> None:
    """
    What cannot be taken apart is not kept at all.
    """
    assert kept == address_without_secrets(address)
    assert kept == address_without_secrets(kept) or kept == REDACTED


def test_secrets_in_options_are_taken_out_by_name_and_by_value() -> None:
    """
    In mappings, in command lines, in texts; the rest is as it was.
    """
    token = Secret("sekret-value")
    given_options = {
        "seed": 0,
        "greedy": True,
        "stop": None,
        "system": "Answer\nshortly.",
        "api_key": "x",
        "headers": {"Authorization": "Bearer x", "User-Agent": "lab"},
        "command": ["serve", "--api-key", "x", "--hf-token=x", "--port", "8000"],
        "seen": "the key sekret-value is here",
        "was": f"taken\nout: {REDACTED}",
        "max_tokens": 96,
    }
    kept = options_without_secrets(given_options, token)
    assert {
        **given_options,
        "api_key": REDACTED,
        "headers": {"Authorization": REDACTED, "User-Agent": "lab"},
        "seen": f"the key {REDACTED} is here",
        "command": kept["command"],
    } == kept
    assert ["serve", "--api-key", REDACTED] == kept["command"][:3]
    assert "x" not in kept["command"][3].replace("hf", "")
    assert ["--port", "8000"] == kept["command"][4:]
    assert kept == options_without_secrets(kept)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_options_without_secrets_are_kept_as_they_are(value: Any) -> None:
    """
    Taking out twice is taking out once; known tokens only are taken from values.
    """
    once = options_without_secrets(value)
    assert once == options_without_secrets(once)
    assert value == values_without_secrets(value, Secret("a-token-nobody-has"))


@given(JSON, st.text(st.characters(codec="utf-8"), max_size=5))
def test_a_token_is_in_no_text_afterwards(value: Any, around: str) -> None:
    """
    Wherever it stood.
    """
    token = Secret("s3kr3t!")
    hidden = {"a": [value, {f"{around}s3kr3t!": f"{around}s3kr3t!{around}"}]}
    assert "s3kr3t!" not in repr(values_without_secrets(hidden, token))
