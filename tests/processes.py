"""Commands that tests run and wait for."""

import subprocess


def ran(command, **how):
    """Exit status and what was said, as text."""
    return subprocess.run(command, check=False, capture_output=True, text=True, **how)


def said(command, **how):
    """Standard output of a command that has to succeed."""
    done = ran(command, **how)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
