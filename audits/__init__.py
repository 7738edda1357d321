"""The audit itself: thin pytest modules that users read, copy and run."""
