"""Remedies: edits of a kernel, verified by execution and ranked by the time that they save."""
