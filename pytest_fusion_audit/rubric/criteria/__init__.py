"""The criteria, one module per dimension: pure functions of evidence, listed in ``MEASURES`` by criterion id."""
