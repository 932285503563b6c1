# shellcheck shell=bash
# Only for tests: cargo-nextest, from source if it is missing; faketime; the interpreters for the examples in the
# documentation; and the documented proxies.

test_packages() {
  have cc || want_package gcc
  have curl || want_package curl
  have python3 || want_package python3
  # Shifts the clock of a server under test.
  have faketime || want_package faketime
  # For the SQLite backup in docs/operations.md.
  have sqlite3 || want_package sqlite3
  # The proxies of docs/deploy, for its tests. Never started here.
  have nginx || want_package nginx-light
  have caddy || want_package caddy
}

test_tools() {
  have cargo-nextest && return
  CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo_install "$CACHE" cargo-nextest \
    --no-default-features --features default-no-update ||
    die 'cargo-nextest could not be installed' 'cargo install cargo-nextest --locked'
}
