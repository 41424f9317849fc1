"""The file tools: read_file, write_file, patch, search_files."""
