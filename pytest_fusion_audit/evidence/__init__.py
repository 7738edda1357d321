"""Evidence: record types, their files, the run directory and the importers."""
