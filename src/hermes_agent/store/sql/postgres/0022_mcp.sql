-- What is known of each MCP server: its configuration's hash, when its tools were listed, why it cannot be used.
CREATE TABLE mcp_link (
    home   bigint NOT NULL,
    server TEXT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (home, server)
);
-- The tools that it listed last, in its order (JSON).
CREATE TABLE mcp_tool (
    home   bigint NOT NULL,
    server TEXT NOT NULL,
    place  bigint NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (home, server, place)
);
