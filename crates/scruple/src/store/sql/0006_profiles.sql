CREATE TABLE profile (
    run_id  TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    name    TEXT NOT NULL,
    kind    TEXT NOT NULL,
    part    BIGINT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (run_id, name, kind, part)
);
