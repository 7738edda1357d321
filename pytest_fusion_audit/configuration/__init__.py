"""``audits/fusion.yaml``: what a user may set, with types and defaults, and what of it may change on a resume.

Everything is optional, nothing unknown is accepted, and every error names file, line and field. No message repeats a
value from the file: a key that was pasted into the wrong field must not reach a log.
"""

from __future__ import annotations

from pytest_fusion_audit.configuration.fields import PHASES
from pytest_fusion_audit.configuration.money_sections import AllowedEndpoint, CapsUsd, Spend, Target, TokenPricing
from pytest_fusion_audit.configuration.reading import (
    DEFAULT_PATH,
    ConfigurationError,
    load_configuration,
    parse_configuration,
)
from pytest_fusion_audit.configuration.resuming import (
    MAY_CHANGE,
    FieldChange,
    ResumeDifferences,
    resume_differences,
)
from pytest_fusion_audit.configuration.sections import Configuration

__all__ = [
    "DEFAULT_PATH",
    "MAY_CHANGE",
    "PHASES",
    "AllowedEndpoint",
    "CapsUsd",
    "Configuration",
    "ConfigurationError",
    "FieldChange",
    "ResumeDifferences",
    "Spend",
    "Target",
    "TokenPricing",
    "load_configuration",
    "parse_configuration",
    "resume_differences",
]
