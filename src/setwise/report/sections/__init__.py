"""The sections of the page.

Each is a function of the material, and a template of the same name that it fills; one that has
nothing to show returns None and is left out.
"""
