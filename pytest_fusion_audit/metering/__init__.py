"""The metered door: every model call of an audit is reserved before it is sent and settled from its own response.

The modules are imported by name (``metering.prices``, ``metering.wire.base``, …); this package imports none of them, so
that a session that reads evidence loads no SDK, no HTTP client and no price table.
"""
