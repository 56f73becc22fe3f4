"""Predicted time of a launch: bounds, replayed warps, and what it is spent on.

Input: `Work`, the streams and bytes of a launch. Output: `Predicted`. Start with `predict`.
"""
