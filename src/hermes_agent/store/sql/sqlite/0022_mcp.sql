-- What is known of each MCP server: its configuration's hash, when its tools were listed, why it cannot be used.
CREATE TABLE mcp_link (
    home   INTEGER NOT NULL,
    server TEXT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (home, server)
) WITHOUT ROWID;
-- The tools that it listed last, in its order (JSON).
CREATE TABLE mcp_tool (
    home   INTEGER NOT NULL,
    server TEXT NOT NULL,
    place  INTEGER NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (home, server, place)
) WITHOUT ROWID;
