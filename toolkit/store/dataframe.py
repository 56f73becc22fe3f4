"""Tables for pandas, which is an extra."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from analysis.errors import UnavailableError

if TYPE_CHECKING:
    import pandas as pd


def dataframe(rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """A DataFrame of rows. Raises UnavailableError without pandas."""
    try:
        import pandas as pd
    except ImportError as error:
        raise UnavailableError(
            "to_dataframe needs pandas: pip install 'gemm-ladder[pandas]'"
        ) from error
    return pd.DataFrame(list(rows))
