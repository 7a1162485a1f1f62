#!/bin/sh
# Prints a table: a history of 10,000 versions and 200 subjects on 1 to 1000 nodes, over the costs in
# costs.json, by the decisions of the real schedule.
set -eu
cd "$(dirname "$0")/../.."
cargo test --quiet --package scruple --bin scruple -- --ignored --nocapture --exact farm::simulation::table
