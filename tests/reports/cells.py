"""Look-up in a table of a section."""


def cell(table, label, title):
    titles = [column.title for column in table.columns]
    return next(row[titles.index(title)] for row in table.rows if row[0].text == label)
