"""Files: profiles, journals, the cache, recorded runs and tuned parameters.

Values come in and files go out, written whole or not at all. Start with `profile_json`.
"""
