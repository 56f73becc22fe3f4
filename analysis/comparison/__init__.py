"""Verdicts between runs, launches and grades, and the statistics behind them.

Comes in: records. Goes out: what changed, what agrees, and by how much. Start with `runs`.
"""
