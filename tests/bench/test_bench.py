"""The benchmark runs, and what it writes has the shape that others read. Nothing is judged."""

import json
import subprocess
import sys

from tests.support.stack import ROOT

SPEED = {"name", "transport", "clients", "ops_s", "raw_ops_s", "unit", "ratio"}
COST = {"name", "transport", "clients", "value", "raw_value", "unit", "ratio"}


def test_the_smallest_run_writes_one_line_for_each_figure(tmp_path):
    results = tmp_path / "results.jsonl"

    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.bench", "--quick", "--transports", "postgres"),
            *("--seconds", "0.05", "--results", results),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert [(line["name"], line["clients"]) for line in lines] == [
        ("claim_complete", 1),
        ("claim_complete", 8),
        ("duplicate", 1),
        ("duplicate", 8),
        ("commits", 1),
        ("wal_bytes", 1),
    ]
    for line in lines:
        assert set(line) == (COST if line["name"] in {"commits", "wal_bytes"} else SPEED)
        assert line["transport"] == "postgres"
        assert line["ratio"] > 0
        assert line["name"] in done.stdout
    # A claim and its report are a commit each, as the two bare statements are. Opening a session is
    # one more, which so few operations do not hide.
    commits = next(line for line in lines if line["name"] == "commits")
    assert 2 <= commits["raw_value"] < 2.5
    assert 2 <= commits["value"] < 2.5
