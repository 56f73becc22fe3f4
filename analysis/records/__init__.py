"""Records of profile.json: records, counters, metrics and tuning runs.

Start with `profile`; `counters` declares every counter, which ncu and the report then include.
"""
