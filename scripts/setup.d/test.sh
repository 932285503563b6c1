# shellcheck shell=bash
# Owns what only tests need: cargo-nextest, from source when the machine has none; faketime; the programs in which the
# documentation's examples are written; and the proxies that it shows.

test_packages() {
  have cc || want_package gcc
  have curl || want_package curl
  have python3 || want_package python3
  # Moves the clock of a server under test.
  have faketime || want_package faketime
  # By which docs/operations.md backs SQLite up.
  have sqlite3 || want_package sqlite3
  # The proxies of docs/deploy, which are tried as they stand. Never started here.
  have nginx || want_package nginx-light
  have caddy || want_package caddy
}

test_tools() {
  have cargo-nextest && return
  CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo_install "$CACHE" cargo-nextest \
    --no-default-features --features default-no-update ||
    die 'cargo-nextest could not be installed' 'cargo install cargo-nextest --locked'
}
