CREATE INDEX arm_by_name ON arm (name, run_id, position);
CREATE INDEX run_by_class ON run (machine_class, started);
