# shellcheck shell=bash
# Owns the test runner: cargo-nextest, from source when the machine has none.

test_packages() { have cc || want_package gcc; }

test_tools() {
  have cargo-nextest && return
  CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo_install "$CACHE" cargo-nextest --locked \
    --no-default-features --features default-no-update ||
    die 'cargo-nextest could not be installed' 'cargo install cargo-nextest --locked'
}
