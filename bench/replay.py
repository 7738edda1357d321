"""Wall time of the whole re-audit command beside an empty pytest session, paired in one run.

Prints the ratio to the peer and the share of the limit (5 s on 2 cores, pytest start included) that the command uses.
Takes the public recorded audit when ../shared is there, else the fixtures of this project.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_S = 5.0
ROUNDS = 5
REPO = Path(__file__).parents[1]
PUBLIC = REPO.parent / "shared" / "runs" / "fusionkit-20260701"


def main() -> None:
    """Run the pair ROUNDS times and print medians, their ratio and the share of the limit."""
    recorded = PUBLIC if PUBLIC.is_dir() else REPO / "fixtures" / "recorded"
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        shutil.copytree(REPO / "audits", base / "audits", ignore=shutil.ignore_patterns("__pycache__"))
        (base / "test_empty.py").write_text("def test_empty():\n    pass\n")
        pytest = [sys.executable, "-m", "pytest", "-q"]
        replay = [*pytest, "audits", "-m", "replay", "--fusion-run-id=bench", f"--fusion-import={recorded}"]
        empty = [*pytest, "test_empty.py"]
        seconds: dict[str, list[float]] = {"replay": [], "empty": []}
        for _ in range(ROUNDS):
            shutil.rmtree(base / "audit", ignore_errors=True)
            for name, command in (("replay", replay), ("empty", empty)):
                begin = time.perf_counter()
                subprocess.run(command, cwd=base, check=True, capture_output=True)
                seconds[name].append(time.perf_counter() - begin)
        scorecard = (base / "audit" / "bench" / "scorecard.json").stat().st_size
    medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    ratios = [a / b for a, b in zip(seconds["replay"], seconds["empty"], strict=True)]
    print(f"re-audit of {recorded.name}: {ROUNDS} pairs, scorecard of {scorecard / 1e3:.0f} kB")
    print(f"  replay / empty pytest session   {statistics.median(ratios):.2f}  [{min(ratios):.2f}, {max(ratios):.2f}]")
    print(f"  replay / limit of {LIMIT_S:.0f} s           {medians['replay'] / LIMIT_S:.2f}")


if __name__ == "__main__":
    main()
