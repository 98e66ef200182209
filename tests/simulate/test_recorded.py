"""Records of real models: forms, visits, runs, and files that are none."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from rollwise.simulate.recorded import read_counts, read_log
from rollwise.types import RollwiseError


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_shipped_log_is_that_of_its_readme():
    log = read_log("rlvr")
    visits = (log.trials > 0).sum(axis=1)
    assert len(log.ids) == 591
    assert (visits.min(), visits.max()) == (44, 57)
    assert set(np.unique(log.trials)) == {0, 8}
    assert log.ids[0] == "dsr_sub-0"
    assert len(read_log("math_cot8").ids) == 49


def test_shipped_counts_are_the_published_ones(training_log):
    shipped, published = read_log("rlvr"), read_log(training_log)
    assert shipped.ids == published.ids
    assert np.array_equal(shipped.successes, published.successes)
    assert np.array_equal(shipped.trials, published.trials)


def test_forms_of_a_line(tmp_path):
    path = write(
        tmp_path / "all.jsonl",
        {"id": "x", "successes": 3, "trials": 8},
        {"correct": [1, 0, 1, 1]},
        {"id": "z", "correct": [2, 5], "n_per_visit": 8},
    )
    log = read_log(path)
    assert log.ids == ("x", "1", "z")
    assert log.successes.tolist() == [[3, 0], [3, 0], [2, 5]]
    assert log.trials.tolist() == [[8, 0], [4, 0], [8, 8]]


def test_a_visit_leaves_out_prompts_that_had_none_and_minus_one_is_each_prompts_last(tmp_path):
    path = write(
        tmp_path / "log.jsonl",
        {"correct": [1, 2], "n_per_visit": 8},
        {"correct": [3], "n_per_visit": 8},
    )
    assert read_counts(path, "1")[0].tolist() == [2]
    assert read_counts(path, "-1")[0].tolist() == [2, 3]


def test_relative_paths_are_looked_for_below_the_data_folder(tmp_path, monkeypatch):
    with gzip.open(tmp_path / "counts.jsonl.gz", "wt") as file:
        file.write(json.dumps({"successes": 1, "trials": 2}) + "\n")
    monkeypatch.setenv("ROLLWISE_DATA", str(tmp_path))
    assert read_log("counts.jsonl.gz").trials.tolist() == [[2]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json\n",
        "[1, 2]\n",
        '{"id": "x"}\n',
        '{"successes": 9, "trials": 8}\n',
        '{"successes": 3, "trials": 4000000000000}\n',
        '{"correct": 3}\n',
        '{"runs": 5}\n',
        '{"runs": {}}\n',
        '{"runs": [1, 2]}\n',
        "[" * 100_000,
    ],
    ids=lambda text: text[:24].strip(),
)
def test_a_file_that_is_no_record_is_one_line_that_names_it(tmp_path, text):
    path = tmp_path / "broken.jsonl"
    path.write_text(text)
    for read in (read_log, read_counts):
        with pytest.raises(RollwiseError, match=r"^pool: .*broken\.jsonl") as error:
            read(path)
        assert "\n" not in str(error.value)


def test_a_damaged_archive_is_named(tmp_path):
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"successes": 1, "trials": 2}\n' * 100)[:-20])
    with pytest.raises(RollwiseError, match="cut.jsonl.gz"):
        read_log(path)


@pytest.mark.parametrize("pair", ["[9, 8]", "[3]", "[3, 8, 1]", '"38"', '["3", "8"]', "[[1], [2]]", "[1e30, 1e30]"])
def test_a_run_whose_counts_are_none_is_named(tmp_path, pair):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"runs": {"x": [3, 8]}}\n' + f'{{"runs": {{"x": {pair}}}}}\n')
    with pytest.raises(RollwiseError, match=r"^pool: .*runs\.jsonl:2: "):
        read_counts(path, "x")


def test_a_byte_order_mark_is_no_part_of_a_line(tmp_path):
    path = tmp_path / "marked.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"successes": 1, "trials": 2}\n')
    assert read_log(path).trials.tolist() == [[2]]


def test_several_runs_want_a_name(tmp_path):
    path = write(tmp_path / "runs.jsonl", {"runs": {"a": [1, 2], "b": [0, 4]}}, {"runs": {"b": [3, 4]}})
    assert read_counts(path, "b")[0].tolist() == [0, 3]
    with pytest.raises(RollwiseError, match="#a"):
        read_counts(path)
    with pytest.raises(RollwiseError, match="#a"):
        read_log(path)
