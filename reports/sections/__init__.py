"""Contents of a page: rows of tables and sentences, which the page and the terminal draw.

The input is records, the output is tables and text. Start with `ladder_table`: the columns of the
ladder.
"""
