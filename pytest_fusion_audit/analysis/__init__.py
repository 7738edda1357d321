"""Bank algebra and validity checks: pure functions of evidence, on which the criteria rest."""
