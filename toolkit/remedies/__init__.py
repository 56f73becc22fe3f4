"""Remedies: edits of a kernel that are made, verified by execution, and ranked by the time saved."""
