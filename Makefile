# The front door. Every target is a thin wrapper; the work is in CMake (.cmake/), .deps/build.sh and .ci/stages.py.
#
#   make            this help
#   make deps       install what is missing and build the pinned libraries, once per machine (minutes; later a no-op)
#   make build      libdtg.so, libdtg.a and the examples, in build/release
#   make demo       train on Fashion-MNIST as a cluster of processes; WORKERS, PS, MODE, CHANNEL: see .ci/demo.
#                   KILL=worker, ps or any kills one of them every KILL_EVERY seconds, and nothing may be lost
#   make test       build everything and run all tests
#   make bench      build and run the benchmarks
#   make models     train the models of capi/examples/models for SECONDS each (default 15), beside TensorFlow and PyTorch where
#                   `make bench` installed them
#   make sanitize   all tests under address and undefined-behaviour sanitizers, the threaded ones under the thread sanitizer,
#                   the kernels' as 64-bit ARM programs in an emulator
#   make arm64      the library and the bindings for 64-bit ARM, by a cross compiler, and programs of every language in an emulator
#   make fuzz       fuzz each surface that reads foreign bytes for FUZZ_SECONDS (default 600); make fuzz-smoke: 10 s each
#   make sim        simulate SEEDS clusters (default 10000) from seed FROM on, with faults, then groups and coordinators, and enter the sums
#                   into tests/sim/ledger.tsv
#   make faults     kill a process that saves checkpoints KILLS times (default 1000) and fail each of its system calls in turn; kill one that trains,
#                   and either end of shared memory, KILLS times
#   make mutants    break the planner on purpose, patch by patch, and see whether the random graphs notice; make mutants-sim: the cluster,
#                   and the simulator
#   make package    Debian packages, crates, a Go module proxy and a Maven repository, in build/packages; make package-test (as root)
#                   installs and uses them on a bare Debian 12
#   make install    into PREFIX (default /usr/local), below DESTDIR
#   make format     reformat sources (clang-format 14); make format-check only looks, and is one of the tests
#   make clean      remove build/
#
# Options: PREFIX, DESTDIR, JOBS, SECONDS, FUZZ_SECONDS, SEEDS, FROM, MUTANTS, KILLS, DTG_CACHE_DIR, DTG_DEPS_DIR (see .deps/build.sh), CMAKE_FLAGS (to configure).

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 600
SEEDS ?= 10000
SECONDS ?= 15
KILLS ?= 1000
CMAKE_FLAGS ?=
export JOBS FUZZ_SECONDS SEEDS FROM CMAKE_FLAGS WORKERS PS MODE STALENESS CHANNEL EPOCHS SEED BATCH SHARDS STRATEGY KILL KILL_EVERY

.PHONY: help deps deps-test deps-sanitize build demo test bench models sanitize arm64 fuzz fuzz-smoke faults sim mutants mutants-sim package package-test install format format-check clean
.DEFAULT_GOAL := help

help:
	@sed -n '3,/^# Options/{s/^# \{0,1\}//;p;}' $(firstword $(MAKEFILE_LIST))

deps:
	@.deps/build.sh

deps-test:
	@.deps/build.sh --with test

deps-sanitize:
	@.deps/build.sh --with sanitize

build: deps
	@cmake --preset release $(CMAKE_FLAGS) >/dev/null
	@cmake --build --preset release $(if $(JOBS),-j $(JOBS)) --target dtg dtg_archive dtg_cli examples

demo: deps
	@.ci/demo

test: deps-test
	@python3 .ci/stages.py test

bench: deps
	@python3 .ci/stages.py bench

models: deps
	@cmake --preset release $(CMAKE_FLAGS) >/dev/null
	@cmake --build --preset release $(if $(JOBS),-j $(JOBS)) --target example_models
	@python3 tests/models/compare.py build/release/example_models --seconds $(SECONDS) --json build/models.json

sanitize: deps-sanitize
	@python3 .ci/stages.py sanitize

arm64: deps-test
	@python3 .ci/stages.py arm64

fuzz: deps-sanitize
	@python3 .ci/stages.py fuzz

fuzz-smoke: deps-sanitize
	@python3 .ci/stages.py fuzz-smoke

sim: deps-test
	@python3 .ci/stages.py sim

faults: deps-test
	@cmake --preset release $(CMAKE_FLAGS) >/dev/null
	@cmake --build --preset release $(if $(JOBS),-j $(JOBS)) --target checkpoint_saver example_fashion_mnist dtg_cli test_cluster
	@tests/faults/faults_test.py build/release/checkpoint_saver --kills $(KILLS)
	@DTG_SOURCE_DIR=. tests/faults/training_test.py build/release/example_fashion_mnist build/release/bin/dtg --kills 200
	@DTG_KILLS=$(KILLS) build/release/test_cluster --gtest_brief=1 --gtest_filter='Kill.SharedMemory*:Kill.TheParameterServerDies*'

mutants: deps-test
	@tests/random/mutants/run.py $(MUTANTS)

mutants-sim: deps-test
	@tests/sim/mutants/run.py $(MUTANTS)

package: build
	@command -v dpkg-shlibdeps >/dev/null || apt-get install -y -q dpkg-dev
	@.ci/package

package-test: package deps-test
	@command -v debootstrap >/dev/null || apt-get install -y -q debootstrap
	@tests/packages/packages_test.py build/packages build/release .

install: build
	@DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)"

format:
	@.ci/format

format-check:
	@.ci/format --check

clean:
	rm -rf build
