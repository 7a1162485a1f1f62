# Each target does all of its own set-up on a fresh Debian or Ubuntu machine with Rust, can be run again, and needs no
# network once everything is installed. `make demo` and `make test` report what they install.

.PHONY: demo test bench docs book studies packages-demo packages-test packages-bench

demo: packages-demo
	cargo build --release --package scruple
	sh demo/run.sh target/release/scruple

test: packages-test
	sh .ci/test.sh

bench: packages-bench
	cargo build --release --package scruple
	python3 bench/run.py --scruple target/release/scruple

# Repeats the published measurements that need only Debian packages; see studies/README.md.
studies: packages-studies
	cargo build --release --package scruple
	sh .ci/studies.sh

# Writes the generated documents: the reference of the command line and the transcripts.
docs:
	cargo build --release --package scruple
	python3 docs/make.py --scruple target/release/scruple

# The documents as a book in target/book, by mdbook.
book:
	python3 docs/book.py --build target/book

packages-demo:
	sh .ci/packages.sh gcc gzip xz-utils zstd

packages-test:
	sh .ci/packages.sh $$(sed 's/\#.*//' .ci/packages-test.txt)
	sh .ci/unpack.sh nginx nginx target/nginx
	sh .ci/node.sh tests/pages target/pages

packages-studies:
	sh .ci/packages.sh $$(sed 's/\#.*//' .ci/packages-studies.txt)
	sh .ci/unpack.sh nginx nginx target/nginx

packages-bench:
	sh .ci/packages.sh $$(sed 's/\#.*//' .ci/packages-test.txt .ci/packages-bench.txt)
