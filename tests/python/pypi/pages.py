"""The programs that a page of docs/ shows: each stands below a line with its name, `NAME.py`:, in a block of Python."""
import os
import re
from typing import Dict

import fleet


def programs(page: str) -> Dict[str, str]:
    """By file name, of docs/PAGE."""
    with open(os.path.join(fleet.TOP, "docs", page), encoding="utf-8") as f:
        return dict(re.findall(r"^`([\w.]+)`:\n\n```python\n(.*?)^```$", f.read(), re.DOTALL | re.MULTILINE))


def write(page: str, folder: str) -> Dict[str, str]:
    """Writes them into a folder; returns the path of each."""
    found = programs(page)
    for name, text in found.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    return {name: os.path.join(folder, name) for name in found}
