"""What profile.json holds: records, counters, metrics and tuning runs. Start with `profile`."""
