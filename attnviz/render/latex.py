r"""Words and tables as LaTeX, compiled as they are or read by another document: with pdflatex, xelatex or lualatex.

Korean needs kotex. A character that the font has not, such as an emoji, is spelled out as its number.
"""

from __future__ import annotations

_ALONE = r"""\expandafter\ifx\csname @nodocument\endcsname\relax\else
\def\attnvizalone{}
\documentclass[a4paper]{article}
\ifdefined\pdftexversion
  \usepackage[utf8]{inputenc}
  \usepackage[T1]{fontenc}
  \usepackage{textcomp}
  \IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\fi
\usepackage[margin=2cm]{geometry}
\usepackage{PACKAGES}KOREAN
\begin{document}
\fi"""
"""What is skipped where a document has begun already: ``\\@nodocument`` is then empty.

Only what the smallest TeX has, so that no package is missing: Latin Modern is there or its place is taken.
"""

_BEGIN = r"""\begingroup
\providecommand{\numbered}[1]{\ifdefined\pdftexversion[U+#1]\else\iffontchar\font"#1 \symbol{"#1}\else[U+#1]\fi\fi}"""

_END = r"""\par\endgroup
\ifdefined\attnvizalone\else\expandafter\endinput\fi
\end{document}"""

_KOREAN = "% texlive-lang-korean on Debian, collection-langkorean of TeX Live\n\\usepackage{kotex}"

ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\ensuremath{<}",
    ">": r"\ensuremath{>}",
    "|": r"\ensuremath{|}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "-": "{-}",
    "·": r"\ensuremath{\cdot}",
    "…": r"\ldots{}",
    "∞": r"\ensuremath{\infty}",
    "≈": r"\ensuremath{\approx}",
    "→": r"\ensuremath{\rightarrow}",
    "Φ": r"\ensuremath{\Phi}",
    "“": "``",
    "”": "''",
    "␣": r"\textvisiblespace{}",
}
"""Characters that LaTeX would obey, join (as it does hyphens) or not find in every font."""


def document(body: str, packages: str, set_up: str = "") -> str:
    r"""A body as a document by itself, and in another one by ``\input``; its first line says which packages it needs.

    `packages` stand with commas; `set_up` holds for this body alone.
    """
    korean, kotex = (f"\n{_KOREAN}", ", kotex") if any(map(_is_korean, body)) else ("", "")
    alone = _ALONE.replace("PACKAGES", packages.replace(" ", "")).replace("KOREAN", korean)
    use = f"% Compile it, or \\input it into a document with \\usepackage{{{packages}{kotex}}}."
    return "\n".join([use, alone, _BEGIN, *filter(None, [set_up]), body, _END, ""])


def escaped(text: str) -> str:
    """The text as LaTeX prints it, letter for letter."""
    return "".join(map(character, " ".join(text.split())))


def character(sign: str) -> str:
    """One character as LaTeX prints it; one that few fonts have is spelled out as its number there."""
    if sign in ESCAPES:
        return ESCAPES[sign]
    if sign.isascii() or _is_korean(sign) or "\u00c0" <= sign <= "\u00ff":
        return sign
    return rf"\numbered{{{ord(sign):X}}}"


def _is_korean(character: str) -> bool:
    return "\uac00" <= character <= "\ud7a3" or "\u3131" <= character <= "\u318e"
