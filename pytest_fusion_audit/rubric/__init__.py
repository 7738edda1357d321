"""The rubric: its file, the 57 criteria as pure functions of evidence, the gates and the scorecard."""
