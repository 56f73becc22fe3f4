"""What a page is made of: rows of tables and sentences, drawn by the page and the terminal.

Comes in: records. Goes out: tables and text. Start with
`ladder_table`: the columns of the ladder.
"""
