"""The site: Markdown guides, a gallery that runs, and a page for every public name."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_sphinx"), str(HERE.parent / "src"), str(HERE.parent)]

import setwise  # noqa: E402

project = "setwise"
author = "The setwise developers"
copyright = author
version = release = setwise.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "pictures",
    "reference",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py"]
nitpicky = True

# Guides
myst_enable_extensions = ["colon_fence", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3

# Reference: every name has a page of its own. Backticks are code, as in Markdown.
default_role = "literal"
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
templates_path = ["_templates"]

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "doc_module": ("setwise",),
    "backreferences_dir": "api/examples",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "copyfile_regex": "",
    "abort_on_example_error": True,
    "image_srcset": ["2x"],
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
}

# Pages. Nothing of them comes from another host.
html_theme = "pydata_sphinx_theme"
html_title = "setwise"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["sphinx-version"],
    "footer_end": ["theme-version"],
    "show_prev_next": True,
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {page: [] for page in ("index", "start", "which_measure", "coming_from")}
