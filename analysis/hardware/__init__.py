"""Constants of the hardware, per architecture, each with its source.

Start with `sm_constants`.
"""
