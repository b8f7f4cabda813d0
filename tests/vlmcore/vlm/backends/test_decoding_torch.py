"""Whole characters, whatever the tokens are."""

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from vlmcore import embedded
from vlmcore.vlm.backends._decoding import TokenDecoder

BYTE_LEVEL = transformers.AutoTokenizer.from_pretrained(embedded.model_directory())


def metaspace_tokenizer() -> transformers.PreTrainedTokenizerFast:
    """A tokenizer as of Llama 2: a space is part of the word, bytes are tokens of their own."""
    words = ["<s>", "</s>", "▁", "▁A", "▁red", "▁circle", ".", "<think>", "</think>"]
    vocabulary = {word: i for i, word in enumerate([*words, *(f"<0x{b:02X}>" for b in range(256))])}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<s>",
        eos_token="</s>",
        additional_special_tokens=["<think>", "</think>"],
    )


METASPACE = metaspace_tokenizer()


def streamed(tokenizer, tokens):
    decoder = TokenDecoder(tokenizer)
    return [*(decoder.add(token) for token in tokens), decoder.finish()]


@given(st.text(max_size=40))
def test_the_pieces_of_any_text_join_to_it(text):
    """Emoji, Hangul and combining marks come out whole, at whatever token they end."""
    tokens = BYTE_LEVEL(text, add_special_tokens=False).input_ids

    assert BYTE_LEVEL.decode(tokens, skip_special_tokens=True) == "".join(
        streamed(BYTE_LEVEL, tokens)
    )


@given(st.lists(st.integers(0, len(BYTE_LEVEL) - 1), max_size=40))
def test_any_tokens_give_what_the_tokenizer_gives_but_for_a_cut_character_at_the_end(tokens):
    """Models write broken bytes too: they are shown as the tokenizer shows them, late or not."""
    whole = BYTE_LEVEL.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    assert whole.rstrip("\ufffd") == "".join(streamed(BYTE_LEVEL, tokens)).rstrip("\ufffd")


@pytest.mark.parametrize("text", ["🙂", "안녕하세요", "日本語", "naïve — “quoted”"])
def test_no_piece_holds_half_a_character(text):
    """A terminal, a file or a socket that is given a piece can write it as it is."""
    pieces = streamed(BYTE_LEVEL, BYTE_LEVEL(text, add_special_tokens=False).input_ids)

    assert not any("\ufffd" in piece for piece in pieces)


def test_a_character_that_is_cut_by_the_length_limit_is_left_out():
    """Three of the four bytes of an emoji are no character."""
    tokens = BYTE_LEVEL("ok 🙂", add_special_tokens=False).input_ids

    assert "ok " == "".join(streamed(BYTE_LEVEL, tokens[:-1]))


def test_spaces_between_words_survive_tokenizers_that_strip_the_first():
    """A word decoded alone would lose its space with tokenizers of the Llama kind."""
    tokens = METASPACE.convert_tokens_to_ids(["▁A", "▁red", "▁circle", "."])

    assert ["A", " red", " circle", ".", ""] == streamed(METASPACE, tokens)


def test_special_tokens_are_dropped_and_the_tags_of_reasoning_are_not():
    """Some tokenizers count the tags among the special tokens; the answer needs them."""
    names = ["<s>", "<think>", "▁A", "</think>", "▁red", "</s>"]

    assert "<think>A</think>red" == "".join(
        streamed(METASPACE, METASPACE.convert_tokens_to_ids(names))
    )


def test_a_word_in_bytes_is_shown_once_it_is_whole():
    """Byte fallback spreads one character over several tokens."""
    tokens = METASPACE.convert_tokens_to_ids([f"<0x{b:02X}>" for b in "é🙂".encode()])

    assert ["", "é", "", "", "", "🙂", ""] == streamed(METASPACE, tokens)
