"""Rungs on tensor cores on an H200: times against predictions, and errors on classes of inputs."""
