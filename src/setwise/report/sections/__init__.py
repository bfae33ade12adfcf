"""The sections of the page, in order.

Each is a module with a function of the material, and a template of the same name that it fills;
one that has nothing to show returns None and is left out.
"""
