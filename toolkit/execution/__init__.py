"""Execution of launches: plan, execution, counts, traffic, time; and the sanitizer.

Input: a kernel and a launch. Output: results of the kernel, counters and a prediction. Start with
`simulate`; docs/one_launch.md follows a launch through the files. Counting has two strategies:
`block_counts` for any kernel, and `declared`, which uses what the registry declares about a rung.
"""
