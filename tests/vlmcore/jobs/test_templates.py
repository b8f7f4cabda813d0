"""Tests of `vlmcore.jobs.templates`: what becomes of an answer before it is a caption."""

from __future__ import annotations

import contextlib
import pickle
import unicodedata
from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.jobs.templates import CaptionTemplate, Cut, PromptTemplate

# Letters that the rules look for, so that they meet in all ways.
RULED = st.text(
    st.sampled_from(
        "`'\"\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb.\u3002,:-"
        " \t\n\r\0\x1b\x85\u2028\ud800a\u00e9\u732b"
    )
)
WORDS = st.lists(
    st.sampled_from(
        [
            "The image shows",
            "the  IMAGE\nshows",
            "cat",
            "```",
            "```json\n",
            '"',
            "'",
            ".",
            " ",
            "\n",
        ]
    )
).map("".join)
ANSWERS = st.one_of(st.text(st.characters()), RULED, WORDS)
TEMPLATES = st.builds(
    CaptionTemplate,
    trigger=st.sampled_from(["", "ohwx cat", "c++"]),
    prefix=st.sampled_from(["", "a photo of "]),
    strip_phrases=st.sampled_from([(), ("The image shows", "a"), ("'", "```")]),
    strip_quotes=st.booleans(),
    strip_fences=st.booleans(),
    strip_full_stop=st.booleans(),
    keep_lines=st.booleans(),
    max_characters=st.one_of(st.none(), st.integers(1, 40)),
    cut=st.sampled_from(Cut),
)


def cleaned(answer: str, **rules: Any) -> str:
    return CaptionTemplate(**rules).clean(answer)


def rendered(answer: str, *, key: str = "a.jpg", **rules: Any) -> str:
    return CaptionTemplate(**rules).render({"caption": answer}, key=key)


def test_an_answer_without_any_rule_is_put_on_one_line() -> None:
    """
    As training sets want it, and with no more white space than there must be.
    """
    assert "A cat on a mat." == cleaned("  A cat\r\n\r\n on\ta  mat. \n")


def test_lines_are_kept_where_that_is_asked_for() -> None:
    """
    All kinds of them are the same; of blank ones one is kept.
    """
    assert "One\ntwo\n\nthree" == cleaned("One \r\ntwo\u2028\u2028\n\n\n three\n", keep_lines=True)


@pytest.mark.parametrize(
    "answer",
    [
        '"A cat."',
        "“A cat.”",
        "„A cat.“",
        "«A cat.»",
        " ' A cat. ' ",
        "\"'A cat.'\"",
        "```\nA cat.\n```",
        "```text\nA cat.\n```\n",
        "``` A cat. ```",
        '```\n"A cat."\n```',
        '"```\nA cat.\n```"',
    ],
)
def test_quotes_and_fences_around_a_whole_caption_are_taken_off(answer: str) -> None:
    """
    In whatever order a model put them.
    """
    assert "A cat." == cleaned(answer)


@pytest.mark.parametrize(
    "answer",
    ['"Stop" and "go"', "It's a cat", '"A cat', 'A "cat"', "```A cat", "'A' 'B'", '"', "`"],
)
def test_quotes_that_are_not_around_the_whole_stay(answer: str) -> None:
    """
    They are a part of what is seen.
    """
    assert answer == cleaned(answer)


def test_quotes_and_fences_stay_where_that_is_asked_for() -> None:
    """
    The rules are switches.
    """
    assert '"A cat"' == cleaned('"A cat"', strip_quotes=False)
    assert "``` A ```" == cleaned("```\nA\n```", strip_fences=False)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The image shows a cat", "a cat"),
        ("the IMAGE\n shows: a cat", "a cat"),
        ("The image shows - a cat", "a cat"),
        ("The image shows the image shows a cat", "a cat"),
        ("In this picture, a cat", "a cat"),
        ("The image showsa cat", "The image showsa cat"),
        ("A cat. The image shows it.", "A cat. The image shows it."),
        ('"The image shows "a cat""', 'The image shows "a cat"'),
        ("The image shows", ""),
    ],
)
def test_phrases_at_the_beginning_are_taken_off(answer: str, expected: str) -> None:
    """
    In any case, however they are spaced, and as whole words only.
    """
    phrases = ["The image shows", "In this picture"]
    if '""' in answer:
        expected = answer  # the quotes around it are not the only ones
    assert expected == cleaned(answer, strip_phrases=phrases)


def test_the_longest_phrase_is_taken_off_whatever_their_order() -> None:
    """
    "The image" would leave "shows" behind.
    """
    phrases = ("The image", "The image shows")
    assert "a cat" == cleaned("The image shows a cat", strip_phrases=phrases)
    assert "a cat" == cleaned("The image shows a cat", strip_phrases=phrases[::-1])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("A cat.", "A cat"),
        ("A cat...", "A cat..."),
        ("猫。", "猫"),
        ("A cat!", "A cat!"),
        (".", ""),
    ],
)
def test_a_full_stop_at_the_end_is_taken_off_where_asked_for(answer: str, expected: str) -> None:
    """
    An ellipsis is none.
    """
    assert expected == cleaned(answer, strip_full_stop=True)
    assert answer == cleaned(answer)


@pytest.mark.parametrize(
    ("most", "cut", "expected"),
    [
        (100, Cut.WORD, "A cat sits. It sleeps, and dreams."),
        (34, Cut.WORD, "A cat sits. It sleeps, and dreams."),
        (22, Cut.WORD, "A cat sits. It sleeps"),
        (20, Cut.WORD, "A cat sits. It"),
        (5, Cut.WORD, "A cat"),
        (3, Cut.WORD, "A"),
        (33, Cut.SENTENCE, "A cat sits."),
        (11, Cut.SENTENCE, "A cat sits."),
        (10, Cut.SENTENCE, "A cat"),
    ],
)
def test_a_long_caption_is_cut_after_a_word_or_a_sentence(
    most: int, cut: Cut, expected: str
) -> None:
    """
    Never longer than asked for; where no sentence fits, whole words do.
    """
    answer = "A cat sits. It sleeps, and dreams."
    assert expected == cleaned(answer, max_characters=most, cut=cut)


def test_a_word_that_is_longer_than_the_caption_may_be_is_cut_itself() -> None:
    """
    As text without spaces is.
    """
    assert "猫猫猫" == cleaned("猫" * 9, max_characters=3)


def test_prefix_and_suffix_stand_around_the_caption() -> None:
    """
    With the space that they bring.
    """
    assert "photo of a cat, 4k" == rendered("a cat", prefix="photo of ", suffix=", 4k")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("a cat", "ohwx cat, a cat"),
        ("an OHWX  cat sits", "an OHWX cat sits"),
        ("an ohwx catfish", "ohwx cat, an ohwx catfish"),
        ("", "ohwx cat"),
    ],
)
def test_a_trigger_word_comes_first_and_never_twice(answer: str, expected: str) -> None:
    """
    Training ties it to what is seen, and twice is stronger than once.
    """
    assert expected == rendered(answer, trigger="ohwx cat")


def test_a_trigger_of_signs_is_found_again_too() -> None:
    """
    It is no pattern.
    """
    assert "c++, a.b" == rendered("a.b", trigger="c++")
    assert "c++ code" == rendered("c++ code", trigger="c++")


def test_a_text_puts_captions_and_names_together() -> None:
    """
    The answers of several prompts, the name of the image and of its folder; braces are doubled.
    """
    template = CaptionTemplate(text="{tags} | {long} | {folder}/{stem} {{x}}")
    template.require_names(["tags", "long"])
    answers = {"tags": "cat, mat", "long": '"A cat."'}
    assert "cat, mat | A cat. | b/c.d {x}" == template.render(answers, key="a/b/c.d.jpg")


def test_the_only_answer_is_the_caption_whatever_its_prompt_is_called() -> None:
    """
    `{caption}` and its own name are the same then.
    """
    template = CaptionTemplate(text="{caption}={short}")
    template.require_names(["short"])
    assert "A=A" == template.render({"short": "A"}, key="a.jpg")


def test_several_captions_without_a_text_follow_each_other() -> None:
    """
    With what was asked for between them; one that is empty leaves nothing.
    """
    answers = {"a": "One.", "b": " ", "c": "Two."}
    assert "One. Two." == CaptionTemplate().render(answers, key="a.jpg", separator=" ")


@pytest.mark.parametrize(
    "text",
    [
        "{caption.__class__}",
        "{caption[0]}",
        "{caption!r}",
        "{caption:>10}",
        "{0}",
        "{}",
        "{",
        "}",
        "{{caption}",
        "{a b}",
        "\x1b[31m{caption}",
        "{caption}\ud800",
        7,
    ],
)
def test_a_text_with_anything_but_names_in_braces_is_refused(text: Any) -> None:
    """
    ``str.format`` would look up attributes, and let a template print what it finds.
    """
    with pytest.raises(ContractError, match=r"^text: "):
        CaptionTemplate(text=text)


def test_what_looks_like_a_field_in_an_answer_is_text() -> None:
    """
    A model may write braces.
    """
    assert "{stem} {{x}}" == rendered("{stem} {{x}}", text="{caption}")


@pytest.mark.parametrize(
    ("text", "names", "problem"),
    [
        ("{captoin}", ["a"], "got the field {captoin}, expected one of {caption}, {a}, {stem}"),
        ("{caption}", ["a", "b"], "got the field {caption}, expected one of {a}, {b}, {stem}"),
        ("{width}", ["a"], "got the field {width}, expected one of {caption}"),
        ("{stem}", ["a"], "got no caption in it, expected one of {caption}, {a}"),
        ("", ["a"], "got no caption in it"),
    ],
)
def test_an_unknown_field_is_refused_before_the_first_image(
    text: str, names: list[str], problem: str
) -> None:
    """
    Also a text that would lose every caption.
    """
    with pytest.raises(ContractError) as caught:
        CaptionTemplate(text=text).require_names(names)
    assert str(caught.value).startswith(f"text: {problem}")


def test_a_prompt_that_is_called_as_a_field_is_refused() -> None:
    """
    Nobody would know which of them is meant.
    """
    with pytest.raises(ContractError, match=r"^name: got 'stem', expected another"):
        CaptionTemplate().require_names(["stem"])


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "{caption}", "prefix": "a"},
        {"text": "{caption}", "suffix": "a"},
        {"prefix": "\x00"},
        {"suffix": None},
        {"trigger": "a\nb"},
        {"trigger": " a"},
        {"strip_phrases": [" "]},
        {"strip_phrases": [1]},
        {"strip_quotes": "no"},
        {"strip_fences": 1},
        {"strip_full_stop": None},
        {"keep_lines": "yes"},
        {"max_characters": 0},
        {"max_characters": True},
        {"cut": "word"},
    ],
)
def test_a_template_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    """
    Each by the name of its field.
    """
    with pytest.raises(ContractError) as caught:
        CaptionTemplate(**fields)
    assert caught.value.field in fields


def test_a_template_can_be_copied_sent_to_other_processes_and_made_again() -> None:
    """
    What was read of its text goes with it.
    """
    template = CaptionTemplate(text="{caption}!", strip_phrases="The image shows")
    for copy in (pickle.loads(pickle.dumps(template)), attrs.evolve(template, trigger="")):
        assert template == copy
        assert "a cat!" == copy.render({"caption": "The image shows a cat"}, key="a.jpg")


@given(template=TEMPLATES, answer=ANSWERS)
@example(CaptionTemplate(strip_full_stop=True), "A cat. .")
@example(CaptionTemplate(max_characters=6, strip_full_stop=True), "A cat. Two")
@example(CaptionTemplate(), "```a b\nc\n```")
def test_cleaning_twice_changes_nothing(template: CaptionTemplate, answer: str) -> None:
    """
    Whatever a model wrote.
    """
    once = template.clean(answer)
    assert once == template.clean(once)
    assert template.max_characters is None or len(once) <= template.max_characters


@given(template=TEMPLATES, answer=ANSWERS, key=ANSWERS, name=st.sampled_from(["caption", "short"]))
def test_rendering_never_fails_and_gives_what_any_text_file_holds(
    template: CaptionTemplate, answer: str, key: str, name: str
) -> None:
    """
    No control characters, line ends only where they are kept, and all of it UTF-8.
    """
    caption = template.render({name: answer}, key=key)
    caption.encode()
    kept = caption.replace("\n", "") if template.keep_lines else caption
    assert not {unicodedata.category(c) for c in kept} & {"Cc", "Zl", "Zp"}
    assert (
        1 >= caption.count(template.trigger) or not template.trigger or template.trigger in answer
    )


@given(answer=ANSWERS, key=ANSWERS)
def test_a_text_renders_any_answer_and_any_name(answer: str, key: str) -> None:
    """
    They are put in as they are, and never read as a template.
    """
    template = CaptionTemplate(text="{caption}|{stem}|{folder}|")
    caption = template.render({"caption": answer}, key=key)
    caption.encode()
    assert f"{template.clean(answer)}|".lstrip() == caption[: len(template.clean(answer)) + 1] or (
        not template.clean(answer)
    )


@given(text=st.text(st.sampled_from(list("{}ab._ \n"))))
def test_any_text_is_a_template_or_refused(text: str) -> None:
    """
    And one that is doubled gives itself.
    """
    with contextlib.suppress(ContractError):
        CaptionTemplate(text=text)
    doubled = text.replace("{", "{{").replace("}", "}}")
    assert text == PromptTemplate(text=doubled).render(key="", width_px=1, height_px=1)


@pytest.mark.parametrize(
    "part", ["The image shows ", '"', "'", "```", "a. ", ". ", "\n ", " .", "{"]
)
def test_a_long_text_of_what_is_stripped_takes_no_longer_than_it_is(part: str) -> None:
    """
    A copy of the text for each turn would take minutes.
    """
    template = CaptionTemplate(strip_phrases=["The image shows"], strip_full_stop=True)
    for answer in (part * 50_000, f"{part * 20_000}a{part[::-1] * 20_000}"):
        attrs.evolve(template, max_characters=20_000, cut=Cut.SENTENCE).clean(answer)
        attrs.evolve(template, keep_lines=True).clean(answer)


# ---- prompts ----------------------------------------------------------------------------------


def test_a_prompt_says_what_the_image_is_called_and_how_large_it_is() -> None:
    """
    For those who sort their images into folders, which is what they know of them.
    """
    template = PromptTemplate(text="{stem} in {folder}, {width} x {height} {{px}}")
    assert not template.is_fixed
    said = template.render(key="birds/robin.jpg", width_px=640, height_px=480)
    assert "robin in birds, 640 x 480 {px}" == said


def test_a_prompt_without_fields_is_the_same_for_every_image() -> None:
    """
    So that it has to be made once only.
    """
    assert PromptTemplate(text="Describe {{it}}.").is_fixed


def test_an_image_at_the_top_has_no_folder() -> None:
    """
    The field is empty then.
    """
    template = PromptTemplate(text="[{folder}]")
    assert "[]" == template.render(key="a.jpg", width_px=1, height_px=1)


@pytest.mark.parametrize("text", ["{caption}", "{stem.x}", "{", "{width:5}", None, "\x07"])
def test_a_prompt_with_another_field_is_refused(text: Any) -> None:
    """
    Before the first image.
    """
    with pytest.raises(ContractError, match=r"^text: "):
        PromptTemplate(text=text)


def test_a_name_with_control_characters_puts_none_into_a_prompt() -> None:
    """
    Files are called by whoever made them.
    """
    template = PromptTemplate(text="{folder}/{stem}")
    said = template.render(key="a\nb/c\x1b[31m.jpg", width_px=1, height_px=1)
    assert "a b/c[31m" == said
