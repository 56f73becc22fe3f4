"""The commands: parse, one library call, print. Start with `app`."""
