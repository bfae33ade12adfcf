"""Colours of both schemes, and the mark of each method: a colour, a shape and a dash.

The hues are those of Okabe and Ito, which people of any colour vision tell apart, made darker for
the light scheme and lighter for the dark one until each has a contrast of 4.5 to the ground.
Shapes and dashes say the same as the colours.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

# Blue, vermilion, green, purple, yellow, sky blue, grey, violet.
METHODS_LIGHT = (
    "#0067b0", "#bf4d00", "#007a5a", "#a8457f", "#7a6200", "#1d7791", "#5c6066", "#7a4fc0",
)  # fmt: skip
METHODS_DARK = (
    "#6cb6ff", "#ff9d5c", "#3fcf9f", "#f095c8", "#e3c34a", "#66cfe8", "#b9bfc7", "#bfa2ff",
)  # fmt: skip
LIGHT = {
    "ground": "#ffffff",
    "raised": "#f6f7f9",
    "ink": "#1b1d21",
    "quiet": "#5a6069",
    "rule": "#e2e5e9",
    "edge": "#8a919b",
    "strong": "#0067b0",
} | {f"m{i}": colour for i, colour in enumerate(METHODS_LIGHT)}
DARK = {
    "ground": "#14161a",
    "raised": "#1c1f25",
    "ink": "#e9ebee",
    "quiet": "#a5acb6",
    "rule": "#2d323a",
    "edge": "#6d7580",
    "strong": "#6cb6ff",
} | {f"m{i}": colour for i, colour in enumerate(METHODS_DARK)}
SCHEMES = {"light": LIGHT, "dark": DARK}

# Outlines about (0, 0), of about the same weight to the eye.
SHAPES = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
    "M-4-4h8v8h-8z",
    "M0-5.6L5.6 0L0 5.6L-5.6 0z",
    "M0-5.2L5.2 4.2H-5.2z",
    "M0 5.2L5.2-4.2H-5.2z",
    "M-1.7-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z",
    "M-5.2-2.6L0-5.2L5.2-2.6V2.6L0 5.2L-5.2 2.6z",
)
DASHES = ("none", "7 3", "2 2.5", "9 3 2 3", "4 2", "12 3")


@dataclass(frozen=True)
class Style:
    """The same in all pictures.

    Attributes
    ----------
    colour : str
        A class that sets the colour.
    shape, dash : str
        Path of its mark, and dashes of its lines.
    """

    colour: str
    shape: str
    dash: str

    @property
    def key(self) -> Markup:
        """The mark by itself, to stand before the name."""
        return Markup(
            '<svg class="key {}" width="13" height="13" viewBox="-6.5 -6.5 13 13" '
            'aria-hidden="true"><path class="mark" d="{}"/></svg>'
        ).format(self.colour, self.shape)


def style_of(place: int) -> Style:
    """The style of the method in that place: 56 before colour and shape repeat together."""
    return Style(
        f"m{place % len(METHODS_LIGHT)}", SHAPES[place % len(SHAPES)], DASHES[place % len(DASHES)]
    )
