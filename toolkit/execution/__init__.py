"""Execution of launches: plan, execution, counts, traffic, time; and the sanitizer.

Input: a kernel and a launch. Output: results of the kernel, counters and a prediction. Start with
`simulate`, or for a rung `rung_simulation`; docs/one_launch.md follows a launch through the files.
"""
