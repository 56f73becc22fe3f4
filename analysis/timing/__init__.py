"""The time of a launch: bounds, replayed warps, and the gap to peak.

Comes in: `Work`, what a launch asks of the hardware. Goes out: `Predicted`. Start with `predict`.
"""
