"""Sweeps: one target under several loads, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from lab_report_cases import loaded, two
from vlmcore.errors import ContractError, InputMismatchError
from vlmcore.lab.report_sweeps import sweeps_of
from vlmcore.lab.sweeps import LoadedRun, group_sweeps, loaded_run, sweep_figures


def summed(clients: int, **fields: Any) -> LoadedRun:
    return loaded_run(loaded(clients, **fields))


def test_cases_count_the_same_however_long_they_take() -> None:
    """
    One case that takes four times as long and one that takes as long as before: twice.
    """
    rows = sweep_figures([summed(1, dog=10.0, cat=900.0), summed(8, dog=40.0, cat=900.0)])

    assert ["one request at a time", "8 clients"] == [row.load for row in rows]
    assert 1.0 == rows[0].times["ttft/1"].value
    assert pytest.approx(2.0) == rows[1].times["ttft/1"].value


def test_there_is_no_ratio_where_a_case_has_no_median() -> None:
    """
    Four requests of it are too few, and the case is named.
    """
    rows = sweep_figures([summed(1, dog=9.0, cat=9.0), summed(2, dog=9.0, cat=9.0, blocks=4)])

    reading = rows[1].times["e2e/1"]
    assert reading.value is None
    assert "case 'cat': " in reading.reason or "case 'dog': " in reading.reason
    assert "4 values" in reading.reason


def test_runs_that_differ_in_more_than_the_load_are_no_sweep() -> None:
    """
    A shorter answer under more load would look like a faster server.
    """
    few = summed(2, dog=9.0, cat=9.0, generation={"max_new_tokens": 5})
    many = summed(1, dog=9.0, cat=9.0)

    with pytest.raises(InputMismatchError, match="generation"):
        sweep_figures([many, few])
    assert [] == group_sweeps([many, few])


def test_runs_under_one_load_are_no_sweep() -> None:
    """
    They are two runs of the same.
    """
    run, other, more = (summed(clients, dog=9.0, cat=9.0) for clients in (4, 4, 8))

    assert [] == group_sweeps([run, other])
    assert [[run, other, more]] == group_sweeps([run, other, more])


def test_the_lightest_load_of_a_sweep_is_the_first_however_its_files_are_named() -> None:
    """
    Names hold digests, and are in no order.
    """
    runs = [summed(clients, dog=9.0, cat=9.0) for clients in (10, 1, 2)]

    (group,) = group_sweeps(runs)

    assert [runs[1], runs[2], runs[0]] == group


def test_a_run_of_two_targets_is_of_no_sweep() -> None:
    """
    They were asked in turn, and neither was alone under its load.
    """
    with pytest.raises(ContractError, match="has 2 targets"):
        loaded_run(two(0.5))


def test_a_sweep_of_nothing_is_refused() -> None:
    """
    There is no first load.
    """
    with pytest.raises(ContractError, match="got none"):
        sweep_figures([])


def test_a_page_shows_loads_in_one_table() -> None:
    """
    With the requests that kept the goals of the plan.
    """
    runs = [summed(1, dog=9.0, cat=19.0), summed(8, dog=9.0, cat=76.0)]

    (table,) = sweeps_of(runs)

    assert "beach: mine" == table.title
    assert [("one request at a time", "10", "0"), ("8 clients", "10", "0")] == [
        row[:3] for row in table.rows
    ]
    assert ["10 of 10", "5 of 10"] == [row[5] for row in table.rows]
    assert ("x 1.000", "x 2.000") == (table.rows[0][6], table.rows[1][6])


def test_goals_without_a_formula_are_left_alone() -> None:
    """
    An artifact of somebody else may have any.
    """
    made = loaded(1, dog=9.0, cat=9.0, goals={"happiness": "much"})

    assert loaded_run(made).good is None
