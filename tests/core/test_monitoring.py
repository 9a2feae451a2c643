"""The alert rules and the Grafana dashboard: every metric and label that they name exists."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dibs
from dibs.cli import main
from tests.core.test_docs import ROOT
from tests.patience import PATIENCE

RULES = ROOT / "docs/prometheus-alerts.yml"
DASHBOARD = ROOT / "docs/grafana-dashboard.json"
FOREIGN = {"node_textfile_mtime_seconds"}
WORDS = {"sum", "max", "by", "and", "rate", "increase", "time", "on"}
"""The functions and operators of PromQL that are used."""


def exported(board: Path) -> dict[str, set[str]]:
    """The labels with their values that each metric of a board has."""
    dibs.open(board, create=True).add("a")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["-d", str(board), "stats", "--prometheus"]) == 0
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^([a-z_]+)\{(.*)\} ", printed.getvalue(), re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'[a-z]+="[^"]*"', labels))
    return found


def nested(lines: list[tuple[int, str]]) -> Any:
    """A value of the part of YAML that the rules use: mappings, lists and plain or quoted texts."""
    depth, first = lines[0]
    if first.startswith("- "):
        starts = [n for n, (at, text) in enumerate(lines) if at == depth]
        assert all(lines[n][1].startswith("- ") for n in starts)
        parts = [lines[a:b] for a, b in zip(starts, [*starts[1:], len(lines)], strict=True)]
        return [nested([(depth + 2, part[0][1][2:]), *part[1:]]) for part in parts]
    found: dict[str, Any] = {}
    while lines:
        (at, text), lines = lines[0], lines[1:]
        assert at == depth, text
        key, colon, value = text.partition(":")
        assert colon, text
        assert key not in found, f"{key} twice"
        inner = lines[: next((n for n, line in enumerate(lines) if line[0] <= depth), len(lines))]
        lines = lines[len(inner) :]
        assert bool(inner) is not bool(value), text
        found[key] = nested(inner) if inner else scalar(value.strip())
    return found


def scalar(text: str) -> str:
    if text.startswith('"'):
        assert isinstance(json.loads(text), str)
        return str(json.loads(text))
    assert ": " not in text, text
    assert " #" not in text, text
    assert text[0] not in "{[&*!|>%@`'", text
    return text


def rules() -> list[dict[str, Any]]:
    lines = [line for line in RULES.read_text().splitlines() if line and not line.startswith("#")]
    parsed = nested([(len(line) - len(line.lstrip()), line.lstrip()) for line in lines])
    assert [group["name"] for group in parsed["groups"]] == ["dibs"]
    found: list[dict[str, Any]] = parsed["groups"][0]["rules"]
    return found


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def test_each_rule_has_a_name_a_condition_and_words_for_a_person() -> None:
    found = rules()
    assert len({rule["alert"] for rule in found}) == len(found) >= 6
    for rule in found:
        assert {"alert", "expr", "labels", "annotations"} <= rule.keys()
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
        assert re.search(r" (>|==) \d+$", rule["expr"]), "an alert compares"


def test_each_expression_names_only_what_dibs_exports(tmp_path: Path) -> None:
    metrics = exported(tmp_path / "board")
    used = set()
    for text in expressions():
        assert text.count("(") == text.count(")")
        plain = re.sub(r"\{[^}]*\}|\[[^]]*\]|by \(\w+\)", "", text)
        names = set(re.findall(r"[a-z_]+", plain)) - WORDS
        assert names <= metrics.keys() | FOREIGN, text
        used |= names
        for name, labels in re.findall(r"(\w+)\{([^}]*)\}", text):
            for label, sign, value in re.findall(r'(\w+)(=~|!=|=)"([^"]*)"', labels):
                if name not in FOREIGN and value != "$board":
                    assert sign in ("=", "!=")
                    assert f'{label}="{value}"' in metrics[name], text
    assert metrics.keys() - used == {"dibs_events_per_minute"}, "the counters replace it"


def test_the_dashboard_is_complete_json_with_panels_side_by_side() -> None:
    found = json.loads(DASHBOARD.read_text())
    variables = {one["name"] for one in found["templating"]["list"]}
    assert variables == {"datasource", "board"}
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in found["panels"]]
    assert len(set(places)) == len({panel["id"] for panel in found["panels"]}) == len(places)
    for panel in found["panels"]:
        assert panel["title"]
        assert panel["targets"]


def test_prometheus_accepts_the_rules() -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("THE ALERT RULES WERE NOT TRIED: promtool is not installed")
    done = subprocess.run(
        [tool, "check", "rules", str(RULES)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_accepts_the_metrics(tmp_path: Path) -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("THE METRICS WERE NOT TRIED: promtool is not installed")
    board = dibs.open(tmp_path / 'a "board"\n', create=True)
    board.add("a")
    for claimed in (False, True):  # the drain time is not a number, then a number
        if claimed:
            claim = board.claim()
            assert claim is not None
            claim.done()
        how = (sys.executable, "-m", "dibs", "-d", str(board.location.where), "stats")
        metrics = subprocess.check_output((*how, "--prometheus"))
        done = subprocess.run(
            [tool, "check", "metrics"], input=metrics, capture_output=True, timeout=PATIENCE
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(("hosts", "fires"), [("some", True), ("all", False)])
def test_only_a_pause_of_the_complete_board_explains_that_nothing_is_claimed(
    tmp_path: Path, hosts: str, fires: bool
) -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("NO ALERT WAS TRIED: promtool is not installed")
    pauses = {each: f"{int(each == hosts)}x40" for each in ("all", "some")}
    series = {
        'dibs_tasks{board="b",state="available"}': "5x40",
        'dibs_events_total{board="b",event="claims"}': "9x40",
    } | {f'dibs_pauses{{board="b",hosts="{each}"}}': value for each, value in pauses.items()}
    (rule,) = (rule for rule in rules() if rule["alert"] == "DibsNothingIsClaimed")
    words = {"summary": "5 available tasks on b, and none was claimed"}
    words["description"] = rule["annotations"]["description"]
    alert = {"exp_labels": {"severity": "critical", "board": "b"}, "exp_annotations": words}
    wanted = {"eval_time": "30m", "alertname": rule["alert"], "exp_alerts": [alert] * fires}
    given = [{"series": name, "values": values} for name, values in series.items()]
    case = {"interval": "1m", "input_series": given, "alert_rule_test": [wanted]}
    file = tmp_path / "case.yml"  # JSON is YAML
    file.write_text(json.dumps({"rule_files": [str(RULES)], "tests": [case]}))
    done = subprocess.run(
        [tool, "test", "rules", str(file)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
