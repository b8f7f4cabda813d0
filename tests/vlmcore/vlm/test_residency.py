"""Residency: one copy a key, the least recently used leave, what is closed is really freed."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from vlmcore.errors import ContractError, ModelMemoryError
from vlmcore.vlm.residency import PROCESS, ProcessResidency, Residency, ResidentModel


class Model:
    """A model that knows whether its memory was given back."""

    def __init__(self, nbytes: int = 10) -> None:
        self.nbytes = nbytes
        self.freed = False

    def free(self) -> None:
        assert not self.freed, "freed twice"
        self.freed = True


class Loader:
    """Loads models of one size, and keeps weak references to what it loaded."""

    def __init__(self, nbytes: int = 10) -> None:
        self.nbytes = nbytes
        self.loaded: list[weakref.ref[Model]] = []

    def __call__(self) -> Model:
        model = Model(self.nbytes)
        self.loaded.append(weakref.ref(model))
        return model


def hold(residency: ProcessResidency, key: str, nbytes: int = 10) -> Loader:
    loader = Loader(nbytes)
    residency.hold(key, loader, nbytes)
    return loader


def test_the_protocols_are_what_the_process_residency_is() -> None:
    """
    The residency of the process is one of many possible, and its models are resident models.
    """
    assert isinstance(PROCESS, Residency)
    assert isinstance(Model(), ResidentModel)
    assert PROCESS.budget_bytes is None


def test_a_model_that_two_hold_is_loaded_once_and_freed_with_the_second_release() -> None:
    """
    There is one copy a key, and it goes when the last holder lets go.
    """
    residency = ProcessResidency()
    first = hold(residency, "a")
    second = hold(residency, "a")

    residency.release("a")
    assert ("a",) == residency.resident_keys
    residency.release("a")

    assert (1, 0) == (len(first.loaded), len(second.loaded))
    assert () == residency.resident_keys
    assert 0 == residency.resident_bytes


def test_a_released_model_is_gone_from_memory() -> None:
    """
    Nothing of the residency keeps a released model alive.
    """
    residency = ProcessResidency()
    loader = hold(residency, "a")
    with residency.using("a") as model:
        assert loader.loaded[0]() is model
    del model

    residency.release("a")
    gc.collect()

    assert loader.loaded[0]() is None


def test_the_least_recently_used_leaves_before_the_next_is_loaded() -> None:
    """
    Room is made before the new model is loaded, not when memory has run out.
    """
    residency = ProcessResidency(budget_bytes=25)
    hold(residency, "a")
    hold(residency, "b")
    with residency.using("a"):
        pass
    seen: list[tuple[object, ...]] = []

    def load() -> Model:
        seen.append(residency.resident_keys)
        return Model()

    residency.hold("c", load, 10)

    assert [("a",)] == seen
    assert ("a", "c") == residency.resident_keys


def test_a_model_that_had_to_leave_comes_back_when_it_is_used() -> None:
    """
    Who holds a model need not know that it was evicted.
    """
    residency = ProcessResidency(budget_bytes=10)
    loader = hold(residency, "a")
    hold(residency, "b")
    assert ("b",) == residency.resident_keys

    with residency.using("a") as model:
        assert not model.freed

    assert 2 == len(loader.loaded)
    assert ("a",) == residency.resident_keys


def test_a_model_leaves_when_its_host_wants_the_memory_and_comes_back() -> None:
    """
    Whoever holds it uses it as before; it is loaded a second time.
    """
    residency = ProcessResidency()
    loader = hold(residency, "a")
    assert residency.leave("a")
    assert residency.resident_keys == ()
    assert residency.leave("a")
    with residency.using("a"):
        assert residency.resident_keys == ("a",)
        assert not residency.leave("a")
    assert len(loader.loaded) == 2
    residency.release("a")
    assert residency.leave("a")


def test_a_model_in_use_never_leaves_and_the_error_says_that_it_is_in_use() -> None:
    """
    A running generation keeps its model; who does not fit beside it is told so.
    """
    residency = ProcessResidency(budget_bytes=15)
    hold(residency, "a")

    with residency.using("a") as model:
        with pytest.raises(ModelMemoryError) as error:
            hold(residency, "b")
        assert not model.freed

    assert "in use" in str(error.value)
    assert (10, 5) == (error.value.needed_bytes, error.value.available_bytes)
    assert "b" == error.value.model
    hold(residency, "b")
    assert ("b",) == residency.resident_keys


def test_a_model_larger_than_the_whole_budget_is_refused_before_it_is_loaded() -> None:
    """
    Nobody has to leave for a model that cannot fit.
    """
    residency = ProcessResidency(budget_bytes=15)
    hold(residency, "a")
    loader = Loader()

    with pytest.raises(ModelMemoryError) as error:
        residency.hold("b", loader, 16)

    assert "more than the whole budget" in str(error.value)
    assert [] == loader.loaded
    assert ("a",) == residency.resident_keys


def test_a_model_that_holds_more_than_was_estimated_makes_the_others_leave() -> None:
    """
    What counts in the end is what a model really holds.
    """
    residency = ProcessResidency(budget_bytes=25)
    hold(residency, "a")

    residency.hold("b", Loader(20), 0)

    assert ("b",) == residency.resident_keys
    assert 20 == residency.resident_bytes


def test_a_model_that_turns_out_larger_than_the_budget_is_freed_again() -> None:
    """
    An estimate that was too low does not leave a model behind that does not fit.
    """
    residency = ProcessResidency(budget_bytes=15)
    loader = Loader(20)

    with pytest.raises(ModelMemoryError):
        residency.hold("a", loader, 0)

    gc.collect()
    assert loader.loaded[0]() is None
    with pytest.raises(ContractError):
        residency.release("a")


def test_a_load_that_fails_leaves_nothing_behind() -> None:
    """
    After a failed load the key is free, and the next attempt starts anew.
    """
    residency = ProcessResidency(budget_bytes=10)

    def fail() -> Model:
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"):
        residency.hold("a", fail, 10)
    with pytest.raises(ContractError, match="is held"), residency.using("a"):
        pass
    hold(residency, "a")

    assert ("a",) == residency.resident_keys


def test_a_reload_that_fails_leaves_the_key_held() -> None:
    """
    Who holds a model may try to use it again later.
    """
    residency = ProcessResidency(budget_bytes=10)
    hold(residency, "a")
    hold(residency, "b")

    with residency.using("b"), pytest.raises(ModelMemoryError), residency.using("a"):
        pass
    with residency.using("a") as model:
        assert not model.freed


@pytest.mark.parametrize("call", ["release", "using"])
def test_a_key_that_nobody_holds_is_refused(call) -> None:
    """
    Releasing too often, or using what was released, is the caller's mistake and said so.
    """
    residency = ProcessResidency()
    hold(residency, "a")
    residency.release("a")

    with pytest.raises(ContractError) as error, contextlib.ExitStack() as stack:
        stack.enter_context(residency.using("a")) if call == "using" else residency.release("a")

    assert "key: got 'a', expected the key of a model that is held" == str(error.value)


def test_a_model_released_while_in_use_is_freed_at_the_end_of_the_use() -> None:
    """
    Closing a predictor does not pull the model away under a running generation.
    """
    residency = ProcessResidency()
    hold(residency, "a")

    with residency.using("a") as model:
        residency.release("a")
        assert not model.freed

    assert model.freed
    assert () == residency.resident_keys


def test_a_model_released_while_in_use_and_held_again_stays() -> None:
    """
    Who comes back in time finds the same copy.
    """
    residency = ProcessResidency()
    hold(residency, "a")

    with residency.using("a") as model:
        residency.release("a")
        again = hold(residency, "a")

    assert [] == again.loaded
    assert not model.freed


def test_two_threads_that_ask_for_one_model_load_it_once() -> None:
    """
    The second waits for the first.
    """
    residency = ProcessResidency()
    loads = []
    both = threading.Barrier(2)

    def load() -> Model:
        loads.append(1)
        release_load.wait(5)
        return Model()

    def ask() -> None:
        both.wait(5)
        residency.hold("a", load, 10)

    release_load = threading.Event()
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    release_load.set()
    for thread in threads:
        thread.join(5)

    assert [1] == loads
    residency.release("a")
    residency.release("a")
    assert () == residency.resident_keys


def test_loading_one_model_does_not_keep_another_from_being_used() -> None:
    """
    A download of an hour does not stop the model that is there.
    """
    residency = ProcessResidency(budget_bytes=100)
    hold(residency, "a")
    loading, go_on = threading.Event(), threading.Event()

    def load() -> Model:
        loading.set()
        go_on.wait(5)
        return Model()

    thread = threading.Thread(target=residency.hold, args=("b", load, 10))
    thread.start()
    assert loading.wait(5)
    with residency.using("a") as model:
        used = not model.freed
    go_on.set()
    thread.join(5)

    assert used
    assert ("a", "b") == residency.resident_keys


def test_a_model_being_loaded_counts_against_the_budget() -> None:
    """
    Two models that do not fit together are not loaded at the same time.
    """
    residency = ProcessResidency(budget_bytes=15)

    def load() -> Model:
        with pytest.raises(ModelMemoryError, match="in use"):
            hold(residency, "b")
        return Model()

    residency.hold("a", load, 10)

    assert ("a",) == residency.resident_keys


@pytest.mark.parametrize("budget", [0, -1, True, 1.5])
def test_a_budget_is_a_whole_number_of_at_least_one(budget) -> None:
    """
    A budget of nothing is a mistake, not a way to switch models off.
    """
    with pytest.raises(ContractError, match="budget_bytes"):
        ProcessResidency(budget)


class WaitingModel(Model):
    """A model whose ``free`` waits for another thread that uses the residency."""

    def __init__(self, residency: ProcessResidency, nbytes: int = 10) -> None:
        super().__init__(nbytes)
        self.residency = residency
        self.other_got_through = False

    def free(self) -> None:
        super().free()
        thread = threading.Thread(target=self._use, daemon=True)
        thread.start()
        thread.join(5)
        self.other_got_through = not thread.is_alive()

    def _use(self) -> None:
        assert self.residency.resident_bytes >= 0
        with contextlib.suppress(ContractError), self.residency.using("other"):
            pass


def test_a_release_does_not_keep_other_threads_out_while_it_frees() -> None:
    """
    What runs while a model is freed may wait for a thread that uses the residency.
    """
    residency = ProcessResidency()
    model = WaitingModel(residency)
    hold(residency, "other")
    residency.hold("a", lambda: model, 10)

    residency.release("a")

    assert (True, True) == (model.freed, model.other_got_through)
    assert ("other",) == residency.resident_keys


def test_the_end_of_a_use_does_not_keep_other_threads_out_while_it_frees() -> None:
    """
    The same holds where the last user, not the last holder, is the one who frees.
    """
    residency = ProcessResidency()
    model = WaitingModel(residency)
    hold(residency, "other")
    residency.hold("a", lambda: model, 10)

    with residency.using("a"):
        residency.release("a")

    assert (True, True) == (model.freed, model.other_got_through)


def test_an_eviction_does_not_keep_other_threads_out_and_is_over_before_the_load() -> None:
    """
    The lock is not held while one model is freed for another, and still both never overlap.
    """
    residency = ProcessResidency(budget_bytes=25)
    model = WaitingModel(residency)
    residency.hold("a", lambda: model, 10)
    hold(residency, "other")
    freed_before_load = []

    def load() -> Model:
        freed_before_load.append(model.freed and model.other_got_through)
        return Model()

    residency.hold("b", load, 10)

    assert [True] == freed_before_load
    assert ("other", "b") == residency.resident_keys


@pytest.mark.parametrize("nbytes", [20, 30])
def test_settling_does_not_keep_other_threads_out_while_it_frees(nbytes) -> None:
    """
    Whether the others leave for a model larger than estimated, or itself: the lock is free.
    """
    residency = ProcessResidency(budget_bytes=29)
    resident = WaitingModel(residency)
    new = WaitingModel(residency, nbytes)
    residency.hold("a", lambda: resident, 10)

    with pytest.raises(ModelMemoryError) if nbytes == 30 else contextlib.nullcontext():
        residency.hold("b", lambda: new, 0)

    assert nbytes == 30 or (True, True) == (resident.freed, resident.other_got_through)
    assert nbytes == 20 or (True, True) == (new.freed, new.other_got_through)
    assert ("b" if nbytes == 20 else "a",) == residency.resident_keys


class SlowModel(Model):
    """A model whose ``free`` takes until it is told to go on."""

    def __init__(self, nbytes: int = 10) -> None:
        super().__init__(nbytes)
        self.leaving, self.go_on = threading.Event(), threading.Event()

    def free(self) -> None:
        self.leaving.set()
        self.go_on.wait(5)
        super().free()


@pytest.mark.parametrize("key", ["a", "b"])
def test_a_load_waits_for_what_another_thread_is_freeing(key) -> None:
    """
    A model that is being freed counts until it is gone, and there is no second copy beside it.
    """
    residency = ProcessResidency(budget_bytes=15 if key == "b" else 100)
    model = SlowModel()
    residency.hold("a", lambda: model, 10)
    seen = []

    def load() -> Model:
        seen.append(model.freed)
        return Model()

    release = threading.Thread(target=residency.release, args=("a",))
    release.start()
    assert model.leaving.wait(5)
    again = threading.Thread(target=residency.hold, args=(key, load, 10))
    again.start()
    again.join(0.1)
    assert [] == seen
    model.go_on.set()
    release.join(5)
    again.join(5)

    assert [True] == seen
    assert (key,) == residency.resident_keys


@pytest.mark.parametrize(("budget_bytes", "available"), [(15, 5), (None, 0)])
def test_a_load_does_not_wait_for_ever_for_a_model_that_is_never_freed(
    monkeypatch, budget_bytes, available
) -> None:
    """
    Where who frees waits for who loads, the load gives up and leaves nothing behind.
    """
    monkeypatch.setattr("vlmcore.vlm.residency._PATIENCE_S", 0.01)
    residency = ProcessResidency(budget_bytes)
    errors: list[ModelMemoryError] = []

    class Waiting(Model):
        def free(self) -> None:
            with pytest.raises(ModelMemoryError, match="still being freed") as error:
                hold(residency, "a")
            errors.append(error.value)
            super().free()

    residency.hold("a", Waiting, 10)
    residency.release("a")

    assert [(10, available)] == [(e.needed_bytes, e.available_bytes) for e in errors]
    hold(residency, "a")
    assert ("a",) == residency.resident_keys


def test_a_model_that_turns_out_too_large_is_freed_not_only_dropped() -> None:
    """
    Something else may still hold it: its memory comes back by ``free`` alone.
    """
    residency = ProcessResidency(budget_bytes=15)
    model = Model(20)

    with pytest.raises(ModelMemoryError):
        residency.hold("a", lambda: model, 0)

    assert model.freed
    assert 0 == residency.resident_bytes


def test_one_model_that_cannot_be_freed_does_not_keep_the_others() -> None:
    """
    All that have to leave are freed, and the error is told; the key that came stays free.
    """
    residency = ProcessResidency(budget_bytes=20)

    class Broken(Model):
        def free(self) -> None:
            raise OSError("stuck")

    second = Model()
    residency.hold("a", Broken, 10)
    residency.hold("b", lambda: second, 10)
    loader = Loader(20)
    with pytest.raises(OSError, match="stuck"):
        residency.hold("c", loader, 20)

    assert second.freed
    assert [] == loader.loaded
    hold(residency, "c", 20)
    assert ("c",) == residency.resident_keys


def test_an_evicted_model_is_gone_from_memory_before_the_next_is_loaded() -> None:
    """
    Nothing of the residency keeps it, not even while the next is being loaded.
    """
    residency = ProcessResidency(budget_bytes=10)
    loader = hold(residency, "a")
    gone = []

    def load() -> Model:
        gone.append(loader.loaded[0]() is None)
        return Model()

    residency.hold("b", load, 10)

    assert [True] == gone


def test_a_key_whose_first_load_is_not_over_is_not_held_yet() -> None:
    """
    Nobody can release what was not yet given.
    """
    residency = ProcessResidency()

    def load() -> Model:
        with pytest.raises(ContractError, match="is held"):
            residency.release("a")
        return Model()

    residency.hold("a", load, 10)

    assert ("a",) == residency.resident_keys


SIZES = {"a": 10, "b": 20, "c": 30, "d": 60}
BUDGET = 50


class ResidencyMachine(RuleBasedStateMachine):
    """
    Whatever is held, used and released in whatever order: the budget holds, nobody is pulled away.
    """

    def __init__(self) -> None:
        super().__init__()
        self.residency = ProcessResidency(BUDGET)
        self.holders = dict.fromkeys(SIZES, 0)
        self.uses: list[tuple[str, Model, contextlib.ExitStack]] = []
        self.alive: list[Model] = []

    def load(self, key: str) -> Model:
        assert self.held_bytes() + SIZES[key] <= BUDGET, "room is made before loading"
        assert not any(model.key == key and not model.freed for model in self.alive), "two copies"
        model = Model(SIZES[key])
        model.key = key
        self.alive.append(model)
        return model

    def held_bytes(self) -> int:
        return sum(model.nbytes for model in self.alive if not model.freed)

    @rule(key=st.sampled_from(sorted(SIZES)))
    def hold(self, key: str) -> None:
        try:
            self.residency.hold(key, lambda: self.load(key), SIZES[key])
        except ModelMemoryError:
            in_use = {used: SIZES[used] for used, _, _ in self.uses}
            assert SIZES[key] + sum(in_use.values()) > BUDGET
        else:
            self.holders[key] += 1

    @precondition(lambda self: any(self.holders.values()))
    @rule(data=st.data())
    def use(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(k for k, n in self.holders.items() if n)))
        stack = contextlib.ExitStack()
        try:
            model = stack.enter_context(self.residency.using(key))
        except ModelMemoryError:
            assert any(used != key for used, _, _ in self.uses)
        else:
            assert key == model.key
            self.uses.append((key, model, stack))

    @precondition(lambda self: self.uses)
    @rule(data=st.data())
    def stop_using(self, data: st.DataObject) -> None:
        _, _, stack = self.uses.pop(data.draw(st.integers(0, len(self.uses) - 1)))
        stack.close()

    @precondition(lambda self: any(self.holders.values()))
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(k for k, n in self.holders.items() if n)))
        self.residency.release(key)
        self.holders[key] -= 1

    @invariant()
    def the_budget_holds(self) -> None:
        assert self.held_bytes() <= BUDGET
        assert self.residency.resident_bytes == self.held_bytes()

    @invariant()
    def what_is_in_use_is_there(self) -> None:
        assert not any(model.freed for _, model, _ in self.uses)

    @invariant()
    def what_nobody_wants_is_gone(self) -> None:
        wanted = {key for key, count in self.holders.items() if count}
        wanted |= {key for key, _, _ in self.uses}
        assert set(self.residency.resident_keys) <= wanted

    def teardown(self) -> None:
        for _, _, stack in self.uses:
            stack.close()
        for key, count in self.holders.items():
            for _ in range(count):
                self.residency.release(key)
        assert 0 == self.residency.resident_bytes == self.held_bytes()


TestResidencyMachine = ResidencyMachine.TestCase
TestResidencyMachine.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
