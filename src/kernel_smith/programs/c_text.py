"""C and C++ text without comments and formatting.

`c_tokens` gives tokens that stay the same when comments, line breaks or spaces change, and differ
when anything else does. Directives are one token each, since their line breaks count. Macros are
not expanded: this is for comparing texts, not for understanding them.
"""

from __future__ import annotations

import re

_COMMENT = r"(?://(?:\\\n|[^\n])*|/\*(?s:.*?)\*/)"
_TEXT = r"""(?:u8|[uUL])?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')\w*"""
_TOKEN = re.compile(
    rf"""
      (?P<directive> ^(?:[ \t]|/\*(?s:.*?)\*/)*\#
                     (?P<rest> (?: \\\r?\n | {_TEXT} | /\*(?s:.*?)\*/ | (?!//)[^\n] )* ) )
    | (?P<blank>     [ \t\r\f\v]+ | \n | \\\r?\n | {_COMMENT} )
    | (?P<raw>       (?:u8|[uUL])?R"(?P<tag>[^()\\\s]{{0,16}})\((?s:.*?)\)(?P=tag)"\w* )
    | (?P<text>      {_TEXT} )
    | (?P<number>    \.?\d(?: [eEpP][+-] | '?\w | \. )* )
    | (?P<word>      [A-Za-z_]\w* )
    | (?P<mark>      <<= | >>= | <=> | ->\* | \.\.\. | :: | -> | \+\+ | -- | << | >> | <= | >=
                   | == | != | && | \|\| | \#\# | \.\* | [-+*/%&|^]= | \S )
    """,
    re.VERBOSE | re.MULTILINE,
)
_IN_DIRECTIVE = re.compile(rf"(?P<text>{_TEXT})|(?P<blank>(?:\s|\\\r?\n|{_COMMENT})+)")


def looks_like_c(text: str) -> bool:
    """Tell whether a string of a candidate is a piece of C-like source: lines with semicolons."""
    return "\n" in text and ";" in text


def c_tokens(text: str) -> list[str]:
    """Return the tokens of a text. A blank at either end is kept, since the text may be a
    fragment."""
    found: list[str] = []
    kind = None
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "directive":
            found.append(_directive(match["rest"]))
        elif kind != "blank":
            found.append(match[0])
        elif not found:
            found.append(" ")
    return [*found, " "] if kind == "blank" and len(found) > 1 else found


def joined(tokens: list[str]) -> str:
    """Return the tokens as text again, each directive on a line of its own."""
    return " ".join([f"\n{token}\n" if token[0] == "#" else token for token in tokens])


def _directive(rest: str) -> str:
    """Blanks become one space: without any, `F (x)` would be a macro with a parameter."""
    return "#" + _IN_DIRECTIVE.sub(lambda match: match["text"] or " ", rest).strip()
