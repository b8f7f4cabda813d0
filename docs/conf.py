"""Sphinx configuration: MyST pages, one executed notebook, and the reference from docstrings."""

from __future__ import annotations

import vlmcore

project = "vlmcore"
author = "The vlmcore authors"
project_copyright = "The vlmcore authors"
version = release = vlmcore.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build", "jupyter_execute"]
html_theme = "furo"
html_extra_path = ["reference/lab-report.html"]
html_title = f"vlmcore {release}"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# A notebook that fails, fails the build. Its outputs are never stored in the repository.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
default_role = "any"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

# Names of other projects, whose inventories would have to be fetched; of ours, fields and members
# that docstrings name by their short names, and what a package offers from its modules.
nitpick_ignore_regex = [
    ("py:.*", r"(collections|contextlib|hypothesis|matplotlib|numpy|os|pathlib|types|typing)\..*"),
    ("py:.*", r"(concurrent|datetime|decimal|ssl|threading)\..*"),
    ("py:.*", "Executor"),  # one that Sphinx names without its module
    ("any", r"[A-Z]\w+Error"),
    ("py:class", "Script"),  # an alias, told in the text
    ("any", r"[A-Z]\w+\.\w+"),
    ("any", r"[a-z_0-9]+"),
    ("any", r"vlmcore(\.(contracts|media|safety|testing))?\.\w+"),
]
