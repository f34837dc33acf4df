"""Sphinx, for the pages that stage.py has put beside a copy of this file."""

project = "shardify"
extensions = ["myst_parser", "sphinx_copybutton"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4  # as GitHub makes them
html_theme = "furo"
html_title = "shardify"
html_extra_path = ["extra"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # needs a server
html_use_index = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
highlight_language = "text"  # of blocks that name none: drawings, output
copybutton_prompt_text = "$ "
html_theme_options = {
    "light_css_variables": {
        "font-stack": "system-ui, sans-serif",
        "color-brand-primary": "#1f6fd0",
        "color-brand-content": "#1f6fd0",
    },
    "dark_css_variables": {"color-brand-primary": "#6cabf7", "color-brand-content": "#6cabf7"},
}
suppress_warnings = ["misc.highlighting_failure"]  # a block of code that is not quite its language is plain
