"""What a model's name means, and what a folder must hold: found out without a framework."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, ModelAccessError, ModelError, UnsupportedModelError
from vlmcore.vlm.catalog import MODELS
from vlmcore.vlm.checkpoint import Checkpoint, read_checkpoint, weight_files
from vlmcore.vlm.sources import resolve_model


def make_folder(folder: Path, *names: str, config: object = None) -> Path:
    """Write a folder of files with these names; the weights in it are empty."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"")
    if "config.json" in names:
        content = {"model_type": "llava"} if config is None else config
        (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def weights(header: dict[str, object], payload: int) -> bytes:
    """Write a safetensors file with *header* and as many zeros."""
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + bytes(payload)


def tensor(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_embedded_is_the_folder_in_the_package() -> None:
    """
    The embedded model needs no hub and no path.
    """
    source = resolve_model("embedded")

    assert source.is_local
    assert ("embedded", "model") == Path(source.location).parts[-2:]
    assert resolve_model() == source


@pytest.mark.parametrize("spec", [spec for spec in MODELS if spec.repo_id], ids=lambda s: s.key)
def test_key_label_and_hub_id_of_a_known_model_mean_the_same(spec) -> None:
    """
    All three lead to one repository, and bring what the catalog knows.
    """
    for name in (spec.key, spec.label, spec.repo_id):
        source = resolve_model(name, revision="v1")
        assert (spec.repo_id, False, "v1", spec) == (
            source.location,
            source.is_local,
            source.revision,
            source.spec,
        )
        assert name == source.name


def test_a_folder_is_found_by_text_by_path_and_from_home(tmp_path, monkeypatch) -> None:
    """
    Relative, absolute and home paths name a folder, as text or as a path.
    """
    folder = make_folder(tmp_path / "models" / "mine", "config.json", "model.safetensors")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))

    for name in (
        str(folder),
        folder,
        "./models/mine",
        "models/mine",
        "~/models/mine",
        "models/mine/",
    ):
        source = resolve_model(name)
        assert source.is_local
        assert folder == Path(source.location)


def test_a_name_of_the_catalog_comes_before_a_folder_of_that_name(tmp_path, monkeypatch) -> None:
    """
    What a name means does not depend on where the program was started.
    """
    make_folder(tmp_path / "qwen3-vl-4b", "config.json", "model.safetensors")
    monkeypatch.chdir(tmp_path)

    assert not resolve_model("qwen3-vl-4b").is_local
    assert resolve_model("./qwen3-vl-4b").is_local
    assert resolve_model(Path("qwen3-vl-4b")).is_local


def test_a_folder_comes_before_a_hub_id_of_the_same_form(tmp_path, monkeypatch) -> None:
    """
    ``org/name`` is a folder where there is one.
    """
    assert not resolve_model("org/name").is_local
    make_folder(tmp_path / "org" / "name", "config.json", "model.safetensors")
    monkeypatch.chdir(tmp_path)

    assert resolve_model("org/name").is_local


@pytest.mark.parametrize(
    "name",
    ["./models/x", "/models/x", "~/models/x", "../x", "a/b/c", "models/", "C:\\models\\x", ".\\x"],
)
def test_what_looks_like_a_path_is_never_asked_of_a_hub(name) -> None:
    """
    A mistyped path is said to be missing, not looked for in the internet.
    """
    with pytest.raises(ModelAccessError) as error:
        resolve_model(name)

    assert str(error.value).startswith(f"{name}: there is no such folder (")


@pytest.mark.parametrize(
    "name",
    [
        "gpt2",
        "qwen",
        "org/na me",
        "org/",
        "-org/name",
        "org/name-",
        "a--b/c",
        "a..b/c",
        "é/x",
        "x" * 5000,
    ],
)
def test_a_name_that_means_nothing_says_what_was_looked_for(name) -> None:
    """
    The error lists what a name can be.
    """
    with pytest.raises(ModelAccessError) as error:
        resolve_model(name)

    assert name == error.value.model
    assert "there is no such" in str(error.value)


def test_a_name_nearly_right_is_answered_with_the_right_one() -> None:
    """
    Names close to what was typed are suggested.
    """
    with pytest.raises(ModelAccessError, match="did you mean 'qwen3-vl-4b'"):
        resolve_model("qwen3-vl-4")


def test_the_entry_for_other_models_asks_for_the_other_model() -> None:
    """
    "Custom Hugging Face model" is a choice in a list, not a model.
    """
    for name in ("Custom Hugging Face model", "custom"):
        with pytest.raises(ModelAccessError, match=r"give that model's hub id \(org/name\)"):
            resolve_model(name)


@pytest.mark.parametrize("model", [None, 3, b"embedded", "", "  ", "a\0b"])
def test_what_cannot_be_a_name_is_refused(model) -> None:
    """
    A name is text or a path, and not blank.
    """
    with pytest.raises(ContractError) as error:
        resolve_model(model)

    assert "model" == error.value.field


def test_a_revision_is_for_models_of_the_hub(tmp_path) -> None:
    """
    A folder has no revisions: asking for one is a mistake, not ignored.
    """
    folder = make_folder(tmp_path, "config.json", "model.safetensors")
    for model in (folder, "embedded"):
        with pytest.raises(ContractError, match="revision: got 'main' for"):
            resolve_model(model, revision="main")
    with pytest.raises(ContractError, match="revision: got blank text"):
        resolve_model("org/name", revision=" ")


@pytest.mark.parametrize(
    ("names", "error", "words"),
    [
        ([], ModelAccessError, "no config.json"),
        (["readme.md"], ModelAccessError, "no config.json"),
        (["config.json"], ModelAccessError, "no weights"),
        (["config.json", "consolidated.safetensors"], ModelAccessError, "no weights"),
        (["model_index.json", "config.json"], UnsupportedModelError, "diffusers"),
        (["x-q4.gguf"], UnsupportedModelError, "GGUF"),
        (["config.json", "x-q4.gguf"], UnsupportedModelError, "GGUF"),
        (["adapter_config.json", "adapter_model.safetensors"], UnsupportedModelError, "LoRA"),
        (["adapter_config.json", "config.json", "model.safetensors"],
         UnsupportedModelError, "LoRA"),
        (["config.json", "pytorch_model.bin"], UnsupportedModelError, "pickled"),
        (["config.json", "pytorch_model.bin.index.json", "pytorch_model-00001-of-00002.bin"],
         UnsupportedModelError, "only safetensors are loaded"),
    ],
)  # fmt: skip
def test_a_folder_that_is_no_model_is_named_for_what_it_is(tmp_path, names, error, words) -> None:
    """
    Each kind of folder that people try has its own words.
    """
    make_folder(tmp_path, *names)

    with pytest.raises(error, match=words) as raised:
        resolve_model(tmp_path)

    assert str(tmp_path) == raised.value.model


def test_a_file_is_not_a_folder(tmp_path) -> None:
    """
    Naming the file of weights is answered with what to name instead.
    """
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"")
    with pytest.raises(UnsupportedModelError, match="is a file; expected the folder"):
        resolve_model(file)


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (b"", ModelError, "config.json is not JSON"),
        (b"\xff\xfe", ModelError, "config.json is not JSON"),
        (b"[" * 100_000, ModelError, "config.json is not JSON"),
        (b"[]", ModelError, "expected a JSON object"),
        (b"{}", UnsupportedModelError, "names no architecture"),
        (b'{"model_type": 3}', UnsupportedModelError, "names no architecture"),
        (b" " * (5 << 20), ModelError, "max_config_bytes"),
    ],
    ids=["empty", "no text", "deep", "list", "no type", "type 3", "large"],
)  # fmt: skip
def test_a_configuration_that_cannot_be_read_is_named(tmp_path, content, error, words) -> None:
    """
    A damaged, foreign or huge config.json is our error with the name of the file.
    """
    make_folder(tmp_path, "config.json", "model.safetensors")
    (tmp_path / "config.json").write_bytes(content)

    with pytest.raises(error, match=words):
        resolve_model(tmp_path)


def test_headers_tell_the_size_and_the_number_format_before_loading(tmp_path) -> None:
    """
    What a model will hold is known from a few bytes of its files.
    """
    header = {
        "__metadata__": {"format": "pt"},
        "a": tensor("BF16", [2, 8], 0, 32),
        "b": tensor("F32", [2], 32, 40),
        "c": tensor("I64", [1], 40, 48),
    }
    (tmp_path / "model.safetensors").write_bytes(weights(header, 48))

    checkpoint = read_checkpoint("m", tmp_path)

    assert {"BF16": 16, "F32": 2, "I64": 1} == checkpoint.elements
    assert "bfloat16" == checkpoint.stored_dtype
    assert 48 == checkpoint.nbytes
    assert 18 * 4 + 8 == checkpoint.nbytes_as(4)
    assert None is Checkpoint(files=(), elements={"U8": 3}).stored_dtype


def test_all_files_that_an_index_names_are_counted(tmp_path) -> None:
    """
    A model in several files is the sum of them.
    """
    for name in ("one.safetensors", "two.safetensors"):
        (tmp_path / name).write_bytes(weights({"a": tensor("F16", [4], 0, 8)}, 8))
    index = {"weight_map": {"x": "two.safetensors", "y": "one.safetensors", "z": "one.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")

    assert ("one.safetensors", "two.safetensors") == weight_files("m", tmp_path)
    assert {"F16": 8} == read_checkpoint("m", tmp_path).elements
    (tmp_path / "two.safetensors").unlink()
    with pytest.raises(ModelAccessError, match=r"two.safetensors is missing"):
        read_checkpoint("m", tmp_path)


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/x.safetensors", "x.bin", ""])
def test_an_index_names_files_beside_it_only(tmp_path, name) -> None:
    """
    A downloaded index cannot point to other files of the machine.
    """
    index = {"weight_map": {"x": name}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")

    with pytest.raises(ModelError, match="expected a file beside it"):
        weight_files("m", tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1234567",
        struct.pack("<Q", 1 << 62),
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 2) + b"{x",
        weights({"a": tensor("F16", [4], 0, 8)}, 7),
        weights({"a": tensor("F16", [4], 0, 8)}, 9),
        weights({"a": tensor("F16", [4], 0, 6)}, 6),
        weights({"a": tensor("F16", [-4], 0, 8)}, 8),
        weights({"a": tensor("F99", [4], 0, 8)}, 8),
        weights({"a": {"dtype": "F16"}}, 8),
        weights({"a": 3}, 0),
    ],
)
def test_damaged_weights_are_named_before_anything_is_loaded(tmp_path, content) -> None:
    """
    A file that was cut short or is something else is said to be damaged, by its name.
    """
    (tmp_path / "model.safetensors").write_bytes(content)

    with pytest.raises(ModelError, match=r"model.safetensors is damaged") as error:
        read_checkpoint("m", tmp_path)

    assert ModelError is type(error.value)


@given(content=st.binary(max_size=200))
def test_any_bytes_of_weights_give_a_count_or_our_error(tmp_path_factory, content) -> None:
    """
    Whatever a file holds, reading its header ends in a value or in a ModelError.
    """
    folder = tmp_path_factory.mktemp("any")
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(content)) + content)
    with contextlib.suppress(ModelError):
        assert read_checkpoint("m", folder).nbytes >= 0
