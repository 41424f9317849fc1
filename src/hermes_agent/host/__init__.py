"""The operating system behind functions that tests can make fail: config, paths, secrets, HTTP, processes, tasks,
logs."""
