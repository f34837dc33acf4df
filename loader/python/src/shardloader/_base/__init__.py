"""What every other module uses: checks of arguments, arrays of the frameworks, options declared once."""
