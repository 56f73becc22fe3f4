"""Predicted time of a launch: bounds, replayed warps, and the gap to peak.

Input: `Work`, the streams and bytes of a launch. Output: `Predicted`. Start with `predict`.
"""
