"""The page: complete, self-contained, honest about runs that failed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from rollwise.report import write
from rollwise.report.page import evaluation_cells


def test_the_page_holds_every_figure_and_number_and_fetches_nothing(finished_run: Path) -> None:
    page = write(finished_run).read_text()
    assert page.count("<svg") == 3
    assert re.findall(r"(?:src|href)=\"(?!#)[^\"]*\"|@import|<script", page) == []
    for text in ("960", "0.600", "± 0.035", "0.400", "min_variance, 4 waves, n ≥ 2, weighed per rollout"):
        assert text in page


def test_the_title_names_the_run_folder_its_methods_and_its_model(finished_run: Path) -> None:
    page = write(finished_run).read_text()
    title = f"{finished_run.name} · adaroll (min_variance) against uniform on embedded"
    assert f"<title>{title} · rollwise</title>" in page and f"<h1>{title}</h1>" in page


def test_a_narrow_page_shows_whole_figures_and_the_results_first(finished_run: Path) -> None:
    page = write(finished_run).read_text()
    head = re.findall(r"<th(?: [^>]*)?>(.*?)</th>", page)
    assert head[:3] == ["arm", "greedy<br>accuracy", "sampled<br>accuracy"]
    cells = re.findall(r"<td(?: [^>]*)?>(.*?)</td>", page[page.index("</span>adaroll") :])
    assert cells[0].startswith("0.600") and cells[1].startswith("0.500") and cells[5] == "960"
    style = page[page.index("<style>") : page.index("</style>")]
    assert "max-width: 100%" in re.findall(r"figure svg \{([^}]*)\}", style)[0]
    widths = [int(width) for width in re.findall(r"min-width: (\d+)px", style)]
    assert all(width <= 200 for width in widths)


def test_what_the_user_wrote_is_escaped(finished_run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(finished_run, tmp_path / "copy")
    record = json.loads((copy / "run.json").read_text()) | {"status": "failed", "error": "<script>alert(1)</script>"}
    (copy / "run.json").write_text(json.dumps(record))
    page = write(copy).read_text()
    assert "<script" not in page and "&lt;script&gt;" in page


def test_a_failed_run_reports_as_far_as_it_got(finished_run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(finished_run, tmp_path / "copy")
    shutil.rmtree(copy / "adaroll")
    record = json.loads((copy / "run.json").read_text()) | {"status": "failed", "error": "outcome: not plain"}
    del record["arms"]["adaroll"]
    (copy / "run.json").write_text(json.dumps(record))
    page = write(copy).read_text()
    assert "outcome: not plain" in page and "failed" in page
    assert page.count("<svg") == 2  # no adaptive arm, so no allocation to show


def test_arms_that_did_not_spend_alike_are_not_said_to(finished_run: Path, tmp_path: Path) -> None:
    assert "spend the same number of rollouts" in write(finished_run).read_text()
    copy = shutil.copytree(finished_run, tmp_path / "copy")
    record = json.loads((copy / "run.json").read_text())
    record["arms"]["adaroll"]["rollouts_spent"] -= 8
    (copy / "run.json").write_text(json.dumps(record))
    page = write(copy).read_text()
    assert "did not spend the same number" in page and "and spend the same" not in page


def test_accuracy_carries_its_standard_error_over_prompts() -> None:
    cells = evaluation_cells({"prompts": 100.0, "greedy": 0.5, "sampled": 0.9})
    assert cells["greedy"] == "0.500" and cells["greedy_error"] == "± 0.050"
    assert cells["sampled_error"] == "± 0.030"


def test_an_accuracy_that_was_not_measured_is_a_dash() -> None:
    assert evaluation_cells(None)["greedy"] == "–"
    assert evaluation_cells({"prompts": 5.0, "greedy": 1.0})["sampled"] == "–"
    assert evaluation_cells({"prompts": 5.0, "greedy": float("nan")})["greedy"] == "–"
