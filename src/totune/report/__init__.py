"""Tables and figures as plain data, then Markdown and HTML drawn from it."""
