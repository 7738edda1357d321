"""Types of the fields of ``fusion.yaml``: strict where a lenient reading could spend money or send a key astray."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

#: Phases that have a cap of their own and may prefer a way of sending.
PHASES = ("smoke", "baseline", "composition", "ablations", "climb", "locked", "served")
PhaseName: TypeAlias = Literal["smoke", "baseline", "composition", "ablations", "climb", "locked", "served"]
Processing: TypeAlias = Literal["batch", "flex", "standard"]

_MOST_USD = Decimal(1_000_000)
#: Names of URL parameters whose values are credentials: ``api_key``, ``access-token``, ``sig``; not ``max_tokens``.
CREDENTIAL_PARAMETER = re.compile(
    r"(?:.*[_.-])?(?:api_?key|key|token|secret|password|passwd|sig|signature|auth|credentials?)", re.IGNORECASE
)


class Section(BaseModel):
    """A mapping of the file: unknown keys are refused; a key without a value (null) is as good as left out.

    A validator that is about one field begins its message with ``field: ``, so that the line of that field is named.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_absent(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if value is not None or name not in cls.model_fields}


def shown(name: str) -> str:
    """A name out of the file as messages may repeat it: not at all when it could be a key in the wrong place.

    >>> shown("gpt-5.5"), shown("sk-test-0000")
    ('gpt-5.5', '(a name that is not shown)')
    """
    return name if re.fullmatch(r"(?!sk-)[A-Za-z0-9_.@/-]{1,60}", name) else "(a name that is not shown)"


def _amount(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError("give an amount of US dollars, such as 25 or 0.50")  # noqa: TRY004 - pydantic wants ValueError
    return str(value) if isinstance(value, float) else value


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name):
        raise ValueError("give the name of an environment variable, never a key itself")
    return name


def _plain_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and parts.hostname and re.fullmatch(r"[!-~]+", url)
        port_is_number = parts.port is None or parts.port > 0
    except ValueError:
        known = port_is_number = False
    if not known or not port_is_number:
        raise ValueError("give a URL that starts with http:// or https:// and holds no blanks")
    parameters = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    if "@" in parts.netloc or any(CREDENTIAL_PARAMETER.fullmatch(name) for name in parameters):
        raise ValueError("holds credentials: take them out of the URL and name a variable in api_key_env")
    return url


#: Dollars as an exact decimal: at least 0, at most a million, at most six decimals.
Usd: TypeAlias = Annotated[
    Decimal, BeforeValidator(_amount), Field(ge=0, le=_MOST_USD, decimal_places=6, allow_inf_nan=False)
]
#: Whole numbers; ``"4"``, ``4.0`` and ``true`` are refused.
Count: TypeAlias = Annotated[int, Field(strict=True, ge=1)]
Whole: TypeAlias = Annotated[int, Field(strict=True, ge=0)]
Flag: TypeAlias = Annotated[bool, Field(strict=True)]
Seconds: TypeAlias = Annotated[float, Field(strict=True, gt=0, le=86_400, allow_inf_nan=False)]
Share: TypeAlias = Annotated[float, Field(strict=True, ge=0, le=1)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]
#: Name of an environment variable. A key pasted here is refused without being repeated.
Variable: TypeAlias = Annotated[str, AfterValidator(_variable)]
#: An http(s) URL without credentials.
PlainUrl: TypeAlias = Annotated[str, AfterValidator(_plain_url)]
