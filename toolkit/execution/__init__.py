"""The one path: plan, execution, counts, traffic, time; and the sanitizer.

Comes in: a kernel and a launch. Goes out: outputs, counters and a prediction. Start with
`simulate`; docs/one_launch.md follows one launch through the files.
"""
