CREATE TABLE history (
    run_id     TEXT PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
    identity   TEXT NOT NULL,
    source     TEXT NOT NULL,
    repository TEXT NOT NULL,
    remote     TEXT,
    commits    TEXT NOT NULL
);
CREATE INDEX history_by_identity ON history (identity);
CREATE INDEX history_by_source ON history (source);
CREATE TABLE version (
    run_id    TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    commit_id TEXT NOT NULL,
    position  BIGINT,
    state     TEXT NOT NULL,
    why       TEXT,
    log       TEXT,
    same_as   TEXT,
    artefacts TEXT,
    counted   BIGINT NOT NULL,
    outputs   TEXT NOT NULL,
    facts     TEXT NOT NULL,
    PRIMARY KEY (run_id, commit_id)
);
