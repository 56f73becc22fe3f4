"""Tuning: configurations of a rung are ranked by prediction, measured, and the best compared again.

Comes in: a rung, shapes, a device. Goes out: the fastest parameters, for `toolkit/tuned`. Start
with `tune`, then `tuner`, which runs the stages `space`, `ranking`, `sweep` and `final` at one
shape.
"""
