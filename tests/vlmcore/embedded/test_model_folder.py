"""The folder of the embedded model: complete, small, plain data, and told about truly."""

import json
import re
import stat

import pytest

from vlmcore import embedded

_FILES = {
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
}
_PACKAGE = embedded.model_directory().parent


def test_the_folder_holds_what_transformers_opens_and_nothing_else() -> None:
    """
    Every file is there, and no program is among them.
    """
    assert _FILES == {path.name for path in embedded.model_directory().iterdir()}


def test_the_package_stays_under_eight_megabytes() -> None:
    """
    The model rides in every wheel.
    """
    assert 8_000_000 > sum(path.stat().st_size for path in _PACKAGE.rglob("*") if path.is_file())


def test_no_file_asks_for_code_from_elsewhere() -> None:
    """
    The classes are those of transformers: a folder with ``auto_map`` would run code of its own.
    """
    for path in embedded.model_directory().glob("*.json"):
        assert "auto_map" not in path.read_text(encoding="utf-8")
    assert (
        "idefics3"
        == json.loads((embedded.model_directory() / "config.json").read_text(encoding="utf-8"))[
            "model_type"
        ]
    )


def test_everybody_may_read_the_files() -> None:
    """
    ``save_pretrained`` writes files that only their owner can read: they would not open for others.
    """
    for path in _PACKAGE.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            assert stat.S_IROTH & path.stat().st_mode, path
            assert not stat.S_IXUSR & path.stat().st_mode, path


def test_weights_are_computed_with_in_32_bits() -> None:
    """
    A CPU computes slowly with 16-bit floats, which the weights are stored as.
    """
    config = json.loads((embedded.model_directory() / "config.json").read_text(encoding="utf-8"))

    assert ["float32"] * 3 == [
        part["dtype"] for part in (config, config["text_config"], config["vision_config"])
    ]


def test_samples_are_pictures_whose_names_do_not_give_the_answer_away() -> None:
    """
    A few small PNG files, the first of which is the sample.
    """
    paths = embedded.sample_scene_paths()

    assert paths[0] == embedded.sample_scene_path()
    assert len(paths) >= 4
    for path in paths:
        assert re.fullmatch(r"scene-\d\.png", path.name)
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 50_000


def _figures() -> dict[str, float]:
    figures = json.loads((_PACKAGE / "evaluation.json").read_text(encoding="utf-8"))
    return {
        "concept recall": figures["concept_recall"]["all"],
        "captions exact": figures["exact"]["caption"]["all"],
        "one-answer questions exact": figures["exact"]["one-answer"]["all"],
        "captions of one object": figures["exact"]["caption"]["one"],
        "captions of one glyph": figures["exact"]["caption"]["glyph"],
        "plain shapes": figures["plain"]["shape"],
    }


@pytest.mark.parametrize(
    "name",
    [
        "concept recall",
        "captions exact",
        "one-answer questions exact",
        "captions of one object",
        "captions of one glyph",
        "plain shapes",
    ],
)
def test_the_model_card_tells_the_figures_of_the_evaluation(name: str) -> None:
    """
    A card that is written by hand goes stale with the first new weights.
    """
    card = (_PACKAGE / "MODEL_CARD.md").read_text(encoding="utf-8")

    assert f"| {name} | {_figures()[name]:.3f} |" in card


def test_the_model_is_as_good_as_it_has_to_be() -> None:
    """
    On 1,000 held-out scenes; under these figures it would be a toy.
    """
    figures = _figures()

    assert 1000 <= json.loads((_PACKAGE / "evaluation.json").read_text(encoding="utf-8"))["scenes"]
    assert figures["concept recall"] >= 0.90
    assert figures["captions exact"] >= 0.70
    assert figures["one-answer questions exact"] >= 0.85


def test_the_model_card_says_what_the_model_does_not_know() -> None:
    """
    Nobody should take a test bed for a product.
    """
    card = " ".join((_PACKAGE / "MODEL_CARD.md").read_text(encoding="utf-8").split())

    assert "no photographs" in card
    assert "not a product" in card


def test_every_transformers_finds_the_same_place_for_a_patch() -> None:
    """
    With as many positions as patches fractions tie, and 4.57 rounds them otherwise than 5.
    """
    vision = json.loads((embedded.model_directory() / "config.json").read_text(encoding="utf-8"))

    positions_a_side = (
        vision["vision_config"]["image_size"] // vision["vision_config"]["patch_size"]
    )

    assert list(range(9)) == [patch * positions_a_side // 9 for patch in range(9)]
    assert all(patch * positions_a_side % 9 for patch in range(1, 9))
