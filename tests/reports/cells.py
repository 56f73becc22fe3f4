"""Look-up in a table of a section."""


def cell(table, label, title, grade=None):
    """The cell of a variant's row under a column, of a grade where several have its title."""
    titles = [column.title for column in table.columns]
    place = next(
        i for i, c in enumerate(table.columns) if c.title == title and grade in (None, c.grade)
    )
    return next(row[place] for row in table.rows if row[titles.index("variant")].text == label)
