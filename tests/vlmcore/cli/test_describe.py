"""``vlmcore describe`` in this process, with an echo for a model."""

import base64
import io
import json
import sys
from pathlib import Path

import pytest

from vlmcore.errors import MissingDependencyError, ModelAccessError, ModelError
from vlmcore.testing import EchoPredictor, echo
from vlmcore.vlm.placement import Attention, Dtype, MemoryMode

RED = "Describe this image in one sentence. [image 6x4 #ff0000]"
BLUE = "Describe this image in one sentence. [image 7x5 #0000ff]"


def test_a_pipe_gets_one_answer_an_image_and_nothing_else(command, pictures) -> None:
    """
    Standard output holds the answers in the order of the images, each ended by a new line.
    """
    done = command("describe", pictures.red, pictures.blue)

    assert (0, f"{RED}\n{BLUE}\n") == (done.code, done.out)


def test_the_model_is_loaded_once(command, pictures) -> None:
    """
    However many images there are, and with the placement that was asked for.
    """
    words = ("--device", "cpu", "--dtype", "float32", "--memory", "cpu", "--attention", "eager")
    done = command("describe", pictures.red, pictures.blue, "--model", "qwen3-vl-2b", *words)

    placement = {
        "device": "cpu",
        "dtype": Dtype.FLOAT32,
        "memory": MemoryMode.CPU,
        "attention": Attention.EAGER,
    }
    assert [("qwen3-vl-2b", placement)] == done.loaded


def test_a_bad_image_is_reported_and_the_others_are_done(command, pictures) -> None:
    """
    The complaint names the file and the reason, a summary counts, and the exit code is 1.
    """
    done = command("describe", pictures.red, pictures.nothing, pictures.text, pictures.blue)

    assert (1, f"{RED}\n{BLUE}\n") == (done.code, done.out)
    assert f"vlmcore: {pictures.nothing}: does not exist\n" in done.err
    assert f"vlmcore: {pictures.text}: " in done.err
    assert "vlmcore: 2 of 4 images could not be described\n" in done.err


def test_where_no_image_can_be_read_no_model_is_loaded(command, pictures) -> None:
    """
    A mistyped path is told at once, and not after minutes of loading.
    """
    done = command("describe", pictures.nothing)

    assert (1, "", []) == (done.code, done.out, done.loaded)


def test_images_are_opened_one_at_a_time(command, pictures, monkeypatch) -> None:
    """
    A picture is read when its turn comes: thousands need the memory of one.
    """
    order = []
    load_image = sys.modules["vlmcore.cli._sources"].load_image

    def noted(source, **limits):
        order.append(Path(source.name).name)
        return load_image(source, **limits)

    def answer(_prompt) -> str:
        order.append("answer")
        return "."

    monkeypatch.setattr("vlmcore.cli._sources.load_image", noted)
    command("describe", pictures.red, pictures.blue, answer=answer)

    assert ["red.png", "answer", "blue.png", "answer"] == order


def test_together_puts_all_images_into_one_prompt(command, pictures) -> None:
    """
    One answer about all; an image that cannot be read leaves none to give.
    """
    words = ("--together", "--prompt", "Compare.")
    done = command("describe", pictures.red, pictures.blue, *words)
    broken = command("describe", pictures.red, pictures.nothing, *words)

    assert "Compare. [image 6x4 #ff0000] [image 7x5 #0000ff]\n" == done.out
    assert (1, "", []) == (broken.code, broken.out, broken.loaded)
    assert f"vlmcore: {pictures.nothing}: does not exist\n" == broken.err


def test_the_question_and_the_system_text_reach_the_model(command, pictures) -> None:
    """
    Both as they were written.
    """
    done = command("describe", pictures.red, "--prompt", "What?", "--system", "Be brief.")

    assert "[system Be brief.] What? [image 6x4 #ff0000]\n" == done.out


def test_several_questions_are_asked_about_each_image_by_themselves(command, pictures) -> None:
    """
    One answer a line: image by image, and for each in the order of the questions.
    """
    asked = ("--prompt", "Which colour?", "--prompt", "How large?")
    done = command("describe", pictures.red, pictures.blue, *asked)

    red, blue = "[image 6x4 #ff0000]", "[image 7x5 #0000ff]"
    lines = [f"{text} {image}" for image in (red, blue) for text in ("Which colour?", "How large?")]
    assert (0, lines) == (done.code, done.out.splitlines())


def test_an_image_is_opened_once_for_all_questions(command, pictures, monkeypatch) -> None:
    """
    Standard input can be read once only; and what is not made again is not paid for again.
    """
    piped = io.TextIOWrapper(io.BytesIO(Path(pictures.red).read_bytes()), encoding="ascii")
    monkeypatch.setattr("sys.stdin", piped)
    done = command("describe", "-", "--prompt", "a", "--prompt", "b")

    assert (0, 2) == (done.code, done.out.count("[image 6x4 #ff0000]"))


def test_json_says_what_was_asked_and_counts_an_image_that_fails_once(command, pictures) -> None:
    """
    An object for each answer; one for an image that nothing was asked about.
    """
    asked = ("--prompt", "a", "--prompt", "b", "--json")
    done = command("describe", pictures.nothing, pictures.red, *asked)

    documents = [json.loads(line) for line in done.out.splitlines()]
    assert [None, "a", "b"] == [document.get("prompt") for document in documents]
    assert "error" in documents[0]
    assert (1, True) == (done.code, "1 of 2 images could not be described" in done.err)


def test_a_question_that_fails_is_told_and_the_next_is_asked(command, pictures) -> None:
    """
    Its object has the question and the error.
    """

    class Failing(EchoPredictor):
        def generate(self, prompt, *more, **options):
            if prompt.text == "a":
                raise ModelError("echo", "is lost for words")
            return super().generate(prompt, *more, **options)

    asked = ("--prompt", "a", "--prompt", "b", "--json")
    done = command("describe", pictures.red, *asked, load=lambda *_, **__: Failing())

    failed, answered = (json.loads(line) for line in done.out.splitlines())
    assert 1 == done.code
    assert {"source": pictures.red, "prompt": "a", "error": "is lost for words"} == failed
    assert ("b", "b [image 6x4 #ff0000]") == (answered["prompt"], answered["text"])


def test_standard_input_is_an_image(command, pictures, monkeypatch) -> None:
    """
    ``-`` reads bytes, whatever the encoding of the terminal.
    """
    piped = io.TextIOWrapper(io.BytesIO(Path(pictures.red).read_bytes()), encoding="ascii")
    monkeypatch.setattr("sys.stdin", piped)

    assert f"{RED}\n" == command("describe", "-").out


def test_standard_input_of_a_terminal_is_not_waited_for(command, monkeypatch) -> None:
    """
    Nobody types an image: the command says that nothing is piped in.
    """

    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Keyboard())

    done = command("describe", "-")

    assert (1, "vlmcore: -: nothing is piped into standard input\n") == (done.code, done.err)


def test_a_data_url_is_an_image_with_a_short_name(command, pictures) -> None:
    """
    In documents and messages it is cut: nobody wants a megabyte of letters back.
    """
    data = base64.b64encode(Path(pictures.red).read_bytes()).decode()
    done = command("describe", f"data:image/png;base64,{data}", "--json")

    document = json.loads(done.out)
    assert RED == document["text"]
    assert document["source"].startswith("data:image/png;base64,")
    assert document["source"].endswith("...")
    assert len(document["source"]) < 60


def test_json_has_one_object_a_line_with_the_documented_fields(command, pictures) -> None:
    """
    Programs read what was asked, what came, why it ended, and what it cost.
    """
    done = command("describe", pictures.red, pictures.nothing, "--json", thoughts="hm")

    first, second = (json.loads(line) for line in done.out.splitlines())
    timings = first.pop("timings")
    assert {
        "source": pictures.red,
        "prompt": "Describe this image in one sentence.",
        "text": RED,
        "reasoning": "hm",
        "stop_reason": "end",
        "prompt_tokens": 10,
        "new_tokens": 11,
        "model": "embedded",
    } == first
    assert {"prepare_s", "first_token_s", "total_s"} == set(timings)
    assert {"source": pictures.nothing, "error": "does not exist"} == second
    assert 1 == done.code


def test_json_of_images_together_lists_their_names(command, pictures) -> None:
    """
    ``source`` is a list then, also for a single image, so that programs need not guess.
    """
    both = command("describe", pictures.red, pictures.blue, "--together", "--json")
    one = command("describe", pictures.red, "--together", "--json")

    assert [pictures.red, pictures.blue] == json.loads(both.out)["source"]
    assert [pictures.red] == json.loads(one.out)["source"]


def test_json_is_ascii_and_keeps_every_character(command, pictures) -> None:
    """
    No locale can damage it, and control characters cannot reach a terminal through it.
    """
    answer = "猫 \x1b[31m\x9b \u2028 é"
    done = command("describe", pictures.red, "--json", answer=lambda _: answer)

    assert done.out.isascii()
    assert "\x1b" not in done.out
    assert answer == json.loads(done.out)["text"]


def test_control_characters_of_an_answer_are_shown_and_not_obeyed(command, pictures) -> None:
    """
    A picture can make a model write anything; new lines and tabs stay.
    """
    done = command("describe", pictures.red, answer=lambda _: "a\x1b]0;owned\x07b\r\x9b2J\n\tc")

    assert "a\\x1b]0;owned\\x07b\\x0d\\x9b2J\n\tc\n" == done.out


def test_a_file_name_cannot_control_the_terminal_either(command, pictures) -> None:
    """
    Names come from downloads; in a message they are one line of visible characters.
    """
    done = command("describe", f"{pictures.folder}/\x1b[2J\nvlmcore: all fine.png")

    assert "\x1b" not in done.err
    assert "/\\x1b[2J\\x0avlmcore: all fine.png: does not exist\n" in done.err


def test_a_name_that_is_not_utf_8_can_be_reported(command, pictures) -> None:
    """
    Such names exist on old disks; what is no text in them is written as an escape.
    """
    name = f"{pictures.folder}/caf\udce9.png"
    shown = f"{pictures.folder}/caf\\xe9.png"

    assert "caf\\xe9.png: does not exist" in command("describe", name).err
    assert shown == json.loads(command("describe", name, "--json").out)["source"]


def test_a_name_in_utf_8_is_itself_where_the_locale_is_not(command) -> None:
    """
    Under ``LANG=C`` Python gives each byte of a name as half a character.
    """
    name = "🙂.png".encode().decode("ascii", "surrogateescape")

    assert "🙂.png" == json.loads(command("describe", name, "--json").out)["source"]


def test_an_animation_is_described_by_its_first_picture_and_that_is_said(command, pictures) -> None:
    """
    Frame 0 is not passed off as the whole.
    """
    image = pytest.importorskip("PIL.Image")
    path = pictures.folder / "moving.gif"
    first, second = (image.new("RGB", (8, 8), colour) for colour in ("red", "blue"))
    first.save(path, save_all=True, append_images=[second])

    assert f"{path}: the first of 2 pictures is described" in command("describe", path).err
    assert "the first of" not in command("describe", pictures.red).err


def test_a_message_is_cut_to_what_a_person_reads(command) -> None:
    """
    The longest name does not hide what is wrong with it.
    """
    complaint = command("describe", "x" * 5000).err.splitlines()[-1]

    assert len(complaint) <= 1000
    assert complaint.startswith("vlmcore: xxx")
    assert "x:" in complaint


def test_a_prompt_that_is_no_text_is_a_mistake_of_the_command_line(command, pictures) -> None:
    """
    A stray byte arrives as half a character.
    """
    done = command("describe", pictures.red, "--prompt", "what\udc80")

    assert 2 == done.code
    assert "--prompt: got" in done.err


def test_the_notes_say_what_answers_and_what_it_is_worth(command, pictures) -> None:
    """
    One line on standard error: the embedded model knows drawn scenes only. ``--quiet`` drops it.
    """
    told = command("describe", pictures.red)
    quiet = command("describe", pictures.red, "--quiet")

    assert 1 == len(told.err.splitlines())
    assert "embedded: a small test model that knows drawn scenes only; on cpu" in told.err
    assert ("", told.out) == (quiet.err, quiet.out)


def test_verbose_tells_how_it_ran_and_how_long(command, pictures) -> None:
    """
    Everything that the predictor reports, and the tokens and seconds of each answer.
    """
    done = command("describe", pictures.red, "--verbose", "--model", "other")

    assert "loading other\n" in done.err
    assert "backend: echo" in done.err
    assert "red.png: 10 tokens read, 9 written in 0.0" in done.err


def test_an_answer_that_is_cut_is_noted_and_counts_as_done(command, pictures) -> None:
    """
    The user set the limit: the text is there, the note says that it is not whole, even if quiet.
    """
    done = command("describe", pictures.red, "--max-new-tokens", "2", "--quiet")

    assert (0, "Describe this\n") == (done.code, done.out)
    assert f"vlmcore: {pictures.red}: the answer is cut after 2 tokens" in done.err


def test_a_model_in_a_loop_is_a_failure(command, pictures) -> None:
    """
    What it wrote is shown and never passed off as an answer: the exit code is 1.
    """
    done = command("describe", pictures.red, loops=True)

    assert 1 == done.code
    assert "the model fell into a loop: what it wrote is not an answer" in done.err


def test_a_model_that_fails_over_one_image_does_the_others(command, pictures) -> None:
    """
    The failure is reported for its image; a caller with many images loses one.
    """
    frail = EchoPredictor(fails_after=3, model="frail")
    sturdy = EchoPredictor()

    class Mixed:
        info = sturdy.info

        def generate(self, prompt, options, /, *, cancel):
            red = "#ff0000" in echo(prompt)
            return (frail if red else sturdy).generate(prompt, options, cancel=cancel)

        def __enter__(self):
            return self

        def __exit__(self, *_: object) -> None:
            pass

    done = command("describe", pictures.red, pictures.blue, load=lambda *_, **__: Mixed())

    assert (1, f"{BLUE}\n") == (done.code, done.out)
    assert f"vlmcore: {pictures.red}: made to fail after 3 tokens\n" in done.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--max-new-tokens", "0"), "--max-new-tokens: got 0, expected a whole number"),
        (("--temperature", "-1"), "--temperature: got -1.0, expected a number from 0"),
        (("--top-p", "2"), "--top-p: got 2.0"),
        (("--seed", "-3"), "--seed: got -3"),
        (("--device", "gpu"), "--device: got 'gpu', expected 'auto', 'cpu'"),
        (("--dtype", "int3"), "argument --dtype: invalid choice: 'int3'"),
        (("--prompt", " "), "--prompt: got blank text"),
        (("--promt", "x"), "unrecognized arguments: --promt"),
        (("--quiet", "--verbose"), "not allowed with argument"),
        (("-", "-"), "IMAGE: got '-' more than once"),
    ],
)
def test_a_wrong_command_line_is_told_before_anything_is_done(
    command, pictures, words, complaint
) -> None:
    """
    The exit code is 2, the option is named, nothing is loaded.
    """
    done = command("describe", pictures.red, *words)

    assert (2, "", []) == (done.code, done.out, done.loaded)
    assert complaint in done.err


def test_too_many_images_together_are_refused_before_they_are_opened(command) -> None:
    """
    The limit is that of a prompt.
    """
    done = command("describe", *["x.png"] * 300, "--together")

    assert 2 == done.code
    assert "--together: got 300, limit is 256" in done.err


def test_a_model_that_cannot_be_loaded_is_exit_code_3(command, pictures) -> None:
    """
    One line with the model and the reason, no traceback.
    """

    def load(model, **_):
        raise ModelAccessError(model, "the hub cannot be reached")

    done = command("describe", pictures.red, "--model", "a/b", load=load)

    assert (3, "") == (done.code, done.out)
    assert "vlmcore: a/b: the hub cannot be reached" == done.err.splitlines()[-1]


def test_a_missing_package_is_exit_code_4(command, pictures) -> None:
    """
    The message says what to install.
    """

    def load(_model, **_):
        raise MissingDependencyError("torch", "local")

    done = command("describe", pictures.red, load=load)

    assert 4 == done.code
    assert 'pip install "vlmcore[local]"' in done.err


def test_the_predictor_is_closed_at_the_end(command, pictures) -> None:
    """
    Also when an image failed.
    """
    made = []

    def load(_model, **_):
        made.append(EchoPredictor())
        return made[-1]

    command("describe", pictures.red, pictures.nothing, load=load)

    assert made[0]._closed


SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'


def test_an_answer_that_fits_the_schema_is_written_as_json_alone(
    command, pictures, tmp_path
) -> None:
    """
    A program reads it as it is: no fence, no words around it.
    """
    (tmp_path / "schema.json").write_text(SCHEMA)
    fenced = 'Sure:\n```json\n{"n":  3}\n```'
    options = ("--schema", str(tmp_path / "schema.json"))
    done = command("describe", pictures.red, *options, answer=lambda _: fenced)

    assert (0, '{"n": 3}\n') == (done.code, done.out)


def test_json_lines_hold_the_value_or_what_was_written_instead(command, pictures, tmp_path) -> None:
    """
    An answer that does not fit is a failure that loses nothing.
    """
    (tmp_path / "schema.json").write_text(SCHEMA)
    answers = iter(['{"n": 3}', "a dog"])
    options = ("--schema", str(tmp_path / "schema.json"), "--json")
    both = (pictures.red, pictures.blue)
    done = command("describe", *both, *options, answer=lambda _: next(answers))
    right, wrong = (json.loads(line) for line in done.out.splitlines())

    assert (1, {"n": 3}) == (done.code, right["value"])
    assert ("a dog", False) == (wrong["written"], "text" in wrong)
    assert wrong["error"].startswith("its answer is not what was asked for: $: is no JSON")


def test_a_wrong_answer_is_sent_back_once_where_that_is_wanted(command, pictures) -> None:
    """
    And what is shown is what came back.
    """
    answers = iter(["a dog", '{"n": 4}'])
    options = ("--json-object", "--repair")
    done = command("describe", pictures.red, *options, answer=lambda _: next(answers))

    assert (0, '{"n": 4}\n') == (done.code, done.out)


@pytest.mark.parametrize(
    ("words", "content", "problem"),
    [
        (("--schema", "FILE"), '{"$ref": "http://x/y"}', "--schema/$ref: got 'http://x/y'"),
        (("--schema", "FILE"), "{", "--schema: FILE: JSON: got Expecting property name"),
        (("--schema", "FILE"), '{"type": "dog"}', "--schema.type: is no schema"),
        (("--schema", "nowhere.json"), "", "--schema: nowhere.json: does not exist"),
        (("--repair",), "", "--repair: got it alone, expected --schema or --json-object too"),
        (("--json-object", "--schema", "FILE"), "{}", "not allowed with argument"),
    ],
)
def test_a_schema_that_does_not_do_is_told_before_anything_is_loaded(
    command, pictures, words, content, problem
) -> None:
    """
    It is a mistake of the command line.
    """
    file = pictures.folder / "schema.json"
    file.write_text(content)
    words = [str(file) if word == "FILE" else word for word in words]
    done = command("describe", pictures.red, *words)

    assert (2, []) == (done.code, done.loaded)
    assert problem.replace("FILE", str(file)) in done.err
