"""Process-wide settings are put back, whatever happens in between."""

import threading

import pytest
import torch

from vlmcore.vlm.backends._numerics import numerics
from vlmcore.vlm.generation import GenerationOptions, MatmulPrecision

CPU = torch.device("cpu")
HIGH = GenerationOptions(matmul_precision=MatmulPrecision.HIGH)
HIGHEST = GenerationOptions(matmul_precision=MatmulPrecision.HIGHEST)


@pytest.fixture(autouse=True)
def _precision_of_the_process():
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("before", ["highest", "high", "medium"])
@pytest.mark.parametrize("options", [HIGH, HIGHEST])
def test_the_precision_holds_for_the_body_and_is_put_back(before, options):
    """A generation neither inherits the process's precision nor leaves its own behind."""
    torch.set_float32_matmul_precision(before)

    with numerics(options, CPU):
        assert options.matmul_precision.value == torch.get_float32_matmul_precision()

    assert before == torch.get_float32_matmul_precision()


def test_the_precision_is_put_back_after_an_error():
    """A generation that fails leaves nothing behind."""
    torch.set_float32_matmul_precision("medium")

    with pytest.raises(KeyError), numerics(HIGH, CPU):
        raise KeyError

    assert "medium" == torch.get_float32_matmul_precision()


def test_two_threads_each_get_the_precision_they_asked_for():
    """Generations of other precision wait; the process's own is back when the last has ended."""
    torch.set_float32_matmul_precision("medium")
    wrong: list[str] = []

    def generate(options: GenerationOptions) -> None:
        for _ in range(200):
            with numerics(options, CPU):
                if torch.get_float32_matmul_precision() != options.matmul_precision.value:
                    wrong.append(options.matmul_precision.value)

    threads = [threading.Thread(target=generate, args=(o,)) for o in (HIGH, HIGHEST, HIGH, HIGHEST)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert [] == wrong
    assert "medium" == torch.get_float32_matmul_precision()


def test_generations_of_equal_precision_run_side_by_side():
    """Two loaded models need not wait for each other."""
    inside = threading.Barrier(2, timeout=30)

    def generate() -> None:
        with numerics(HIGH, CPU):
            inside.wait()  # reached only if both are inside at once

    threads = [threading.Thread(target=generate) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert not inside.broken


def test_a_seed_repeats_the_draw_and_leaves_the_process_generator_alone():
    """Sampling with a seed is repeatable, and does not disturb anybody else's random numbers."""
    seeded = GenerationOptions(temperature=1.0, seed=5)
    state = torch.get_rng_state()

    with numerics(seeded, CPU):
        first = torch.rand(3).tolist()
    with numerics(seeded, CPU):
        second = torch.rand(3).tolist()

    assert first == second
    assert torch.equal(state, torch.get_rng_state())


def test_a_program_that_uses_the_newer_interface_of_pytorch_can_generate():
    """One precision for each backend, after which the older interface may refuse to be read."""
    matmul = torch.backends.cuda.matmul
    if not hasattr(matmul, "fp32_precision"):
        pytest.skip("this PyTorch has the older interface only")
    before = matmul.fp32_precision
    matmul.fp32_precision = "tf32"
    try:
        with numerics(HIGHEST, CPU):
            assert "ieee" == matmul.fp32_precision
        assert "tf32" == matmul.fp32_precision
    finally:
        matmul.fp32_precision = before
