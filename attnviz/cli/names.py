"""Names of files, made from what they show."""

from __future__ import annotations

import hashlib
import re


def slug(text: str, length: int) -> str:
    """Letters and digits of any script, all else a hyphen; where that loses something, a short hash tells it apart."""
    slug = re.sub(r"[\W_]+", "-", text.lower()).strip("-")
    if slug == re.sub(r"[ ._-]", "-", text.lower()) and len(slug) <= length:
        return slug
    return f"{slug[:length].rstrip('-') or 'text'}-{hashlib.blake2b(text.encode(), digest_size=3).hexdigest()}"
