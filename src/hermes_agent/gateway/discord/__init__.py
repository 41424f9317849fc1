"""Discord: its REST interface and its gateway, in words of ours."""
