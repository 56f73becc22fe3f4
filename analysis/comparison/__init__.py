"""Verdicts between runs, launches and grades, and the statistics behind them.

Input: records. Output: changes, agreements and their size. Start with `runs`.
"""
