"""The site of these pages, built by ``sphinx-build -W docs docs/_build``: no file from another server."""

from sphinx.application import Sphinx

import attnviz

project = "attnviz"
copyright = "attnviz developers"
version = release = attnviz.__version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3

autodoc_member_order = "groupwise"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80
default_role = "code"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"attnviz {release}"
html_copy_source = False


# GitHub shows these two outside docs/; pages of the site include them.
INCLUDED = {"../README.md": "index.md", "../sample_inputs/README.md": "sample-inputs.rst"}


def _link_to_pages(_: Sphinx, __: str, source: list[str]) -> None:
    """Let links to the included files lead to the pages that include them."""
    for file, page in INCLUDED.items():
        source[0] = source[0].replace(f"]({file}", f"]({page}")


def setup(app: Sphinx) -> None:
    """Register the hook above."""
    app.connect("source-read", _link_to_pages)
