"""The reading half of each dialect: streamed answers into neutral parts. The table is that of `dialects`."""
