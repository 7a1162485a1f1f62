CREATE TABLE run (
    id            TEXT PRIMARY KEY,
    label         TEXT,
    started       BIGINT NOT NULL,
    state         TEXT NOT NULL,
    owner         BIGINT NOT NULL,
    seed          TEXT NOT NULL,
    machine_class TEXT NOT NULL,
    argv          TEXT NOT NULL,
    terms         TEXT NOT NULL,
    provenance    TEXT NOT NULL,
    warnings      TEXT NOT NULL
);
CREATE INDEX run_by_start ON run (started);
CREATE INDEX run_by_label ON run (label);
CREATE TABLE arm (
    run_id   TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    name     TEXT NOT NULL,
    role     TEXT NOT NULL,
    version  TEXT,
    subject  TEXT NOT NULL,
    params   TEXT NOT NULL,
    PRIMARY KEY (run_id, position)
);
CREATE TABLE sample (
    run_id   TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    metric   TEXT NOT NULL,
    pass     TEXT,
    unit     TEXT,
    quality  TEXT,
    source   TEXT,
    readings TEXT,
    blocks   TEXT,
    absent   TEXT,
    PRIMARY KEY (run_id, position, metric)
);
CREATE TABLE journal (
    run_id   TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    sequence BIGINT NOT NULL,
    position BIGINT NOT NULL,
    pass     TEXT NOT NULL,
    block    BIGINT NOT NULL,
    readings TEXT NOT NULL,
    PRIMARY KEY (run_id, sequence)
);
