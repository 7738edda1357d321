"""Root of the project's own test session."""

pytest_plugins = ("pytest_fusion_audit.plugin", "pytester")
