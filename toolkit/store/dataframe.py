"""Tables for pandas, which is an extra."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from analysis.argument_types import checked
from analysis.errors import UnavailableError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

Rows = Callable[[], Iterable[Mapping[str, object]]]


@checked
def dataframe(tables: Mapping[str, Rows], name: str) -> pd.DataFrame:
    """The table of this name as a DataFrame.

    Raises UnknownNameError for a name that `tables` lacks, InputError for what is no text, and
    UnavailableError without pandas.
    """
    if name not in tables:
        raise UnknownNameError("table", name, tables)
    try:
        import pandas as pd
    except ImportError as error:
        raise UnavailableError(
            "to_dataframe needs pandas: pip install 'gemm-ladder[pandas]'"
        ) from error
    return pd.DataFrame(list(tables[name]()))
