"""Options say what is wrong with them."""

import math
import pickle

import pytest

from vlmcore.errors import ContractError
from vlmcore.vlm.generation import (
    CancelToken,
    GenerationCache,
    GenerationOptions,
    MatmulPrecision,
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_new_tokens", 0),
        ("max_new_tokens", True),
        ("max_new_tokens", 1.5),
        ("temperature", -0.1),
        ("temperature", 1e-300),
        ("thinking", "no"),
        ("stop_on_repetition", None),
        pytest.param("max_new_tokens", 10**5000, id="a length with 5000 digits"),
        pytest.param("seed", 10**5000, id="a seed with 5000 digits"),
        ("temperature", math.nan),
        ("temperature", "hot"),
        ("top_p", 0),
        ("top_p", 1.01),
        ("top_k", 0),
        ("seed", -1),
        ("seed", 1 << 63),
        ("seed", 1.0),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", math.inf),
        ("stop", ("",)),
        ("stop", (1,)),
        ("stop", 3),
        ("cache", "static"),
        ("matmul_precision", "high"),
    ],
)
def test_a_value_outside_its_contract_is_refused_by_its_name(field, value):
    """The error names the field, so that a form can point at it."""
    with pytest.raises(ContractError) as refused:
        GenerationOptions(**{field: value})

    assert field == refused.value.field


def test_the_default_is_greedy():
    """Two runs of the same prompt give the same answer unless sampling was asked for."""
    assert not GenerationOptions().samples
    assert GenerationOptions(temperature=0.1).samples


def test_one_stop_text_needs_no_tuple():
    """A string is one stop text, not its letters."""
    assert ("###",) == GenerationOptions(stop="###").stop
    assert ("a", "b") == GenerationOptions(stop=["a", "b"]).stop


def test_options_can_be_pickled():
    """Job engines send them to other processes."""
    options = GenerationOptions(
        seed=3, cache=GenerationCache.STATIC, matmul_precision=MatmulPrecision.HIGH
    )

    assert options == pickle.loads(pickle.dumps(options))


def test_a_cancelled_token_stays_cancelled():
    """One token may be given to many calls."""
    token = CancelToken()
    assert not token.cancelled

    token.cancel()
    token.cancel()

    assert token.cancelled


def test_a_token_calls_back_when_it_is_cancelled_and_only_within_the_block() -> None:
    """
    At once if it was cancelled before.
    """
    token, called = CancelToken(), []
    with token.calling(lambda: called.append("within")):
        assert [] == called
        token.cancel()
    token.cancel()
    with token.calling(lambda: called.append("at once")):
        pass
    assert ["within", "at once"] == called
