"""The pages: a report, a comparison, a tuning run. Start with `page`."""
