"""Pictures for both schemes: a raw ``<picture>`` becomes two images, each shown in its scheme."""

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

PICTURE = re.compile(
    r'<picture><source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]*)">'
    r'<img alt="(?P<alt>[^"]*)" src="(?P<light>[^"]*)"></picture>'
)


class Pictures(SphinxTransform):
    """Replace raw pictures by images, which are copied and checked like all others."""

    default_priority = 200

    def apply(self, **kwargs):
        """Each line of raw HTML that is made of pictures."""
        for raw in list(self.document.findall(nodes.raw)):
            found = list(PICTURE.finditer(raw.astext()))
            if found:
                raw.replace_self(
                    [
                        nodes.image(uri=one[scheme], alt=one["alt"], classes=[f"only-{scheme}"])
                        for one in found
                        for scheme in ("light", "dark")
                    ]
                )


def setup(app):
    """Add the transform."""
    app.add_transform(Pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
