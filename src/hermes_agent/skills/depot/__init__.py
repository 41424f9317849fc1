"""The unchanged files of skills from elsewhere and of originals that were copied, and which of them are used."""
