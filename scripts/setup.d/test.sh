# shellcheck shell=bash
# Owns the test runner, cargo-nextest, from source when the machine has none; and the programs in which the
# documentation's examples are written.

test_packages() {
  have cc || want_package gcc
  have curl || want_package curl
  have python3 || want_package python3
}

test_tools() {
  have cargo-nextest && return
  CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo_install "$CACHE" cargo-nextest --locked \
    --no-default-features --features default-no-update ||
    die 'cargo-nextest could not be installed' 'cargo install cargo-nextest --locked'
}
