# shellcheck shell=bash
# Only for tests: cargo-nextest, from source if it is missing; faketime; the interpreters for the examples in the
# documentation; the documented proxies; and the lock libraries of other languages. Those of PHP are Debian's.

test_packages() {
  have cc || want_package gcc
  have curl || want_package curl
  have python3 || want_package python3
  python3 -m pip --version >/dev/null 2>&1 || want_package python3-pip
  # Shifts the clock of a server under test.
  have faketime || want_package faketime
  # For the SQLite backup in docs/operations.md.
  have sqlite3 || want_package sqlite3
  # The proxies of docs/deploy, for its tests. Never started here.
  have nginx || want_package nginx-light
  have caddy || want_package caddy
  # The driver of the PyPI packages.
  [[ $(ldconfig -p) == *libpq.so.5* ]] || want_package libpq5
  # Run by the npm package of Liquibase, which contains the program.
  have java || want_package default-jre-headless
  have php || want_package php-cli
  php --ri pdo_pgsql >/dev/null 2>&1 || want_package php-pgsql
  php --ri redis >/dev/null 2>&1 || want_package php-redis
  local library
  for library in Symfony/Component/Lock:symfony-lock Doctrine/DBAL:doctrine-dbal Illuminate/Cache:illuminate-cache \
    Illuminate/Database:illuminate-database Illuminate/Redis:illuminate-redis; do
    [[ -f /usr/share/php/${library%%:*}/autoload.php ]] || want_package "php-${library##*:}"
  done
}

# The lock clients of other languages that the tests run, exactly as locked.
test_clients() {
  local folder lock stamp
  for lock in "$ROOT"/server/tests/clients/*/package-lock.json; do
    folder=$(dirname "$lock")
    stamp=$folder/node_modules/.leasehold-lock
    cmp -s "$lock" "$stamp" && continue
    { have node && have npm; } || die 'the lock clients of the tests need Node with npm' 'install Node from https://nodejs.org'
    quietly "npm ci in ${folder#"$ROOT"/}" npm ci --prefix "$folder" --no-audit --no-fund --ignore-scripts ||
      die 'the npm packages could not be installed' "cd $folder && npm ci --ignore-scripts"
    cp "$lock" "$stamp"
  done
  folder=$ROOT/server/tests/clients/python
  lock=$folder/requirements.txt
  cmp -s "$lock" "$folder/site/.leasehold-lock" && return
  rm -rf "$folder/site"
  quietly 'pip install in server/tests/clients/python' python3 -m pip install --no-compile --require-hashes --no-deps --target "$folder/site" -r "$lock" ||
    die 'the PyPI packages could not be installed' "cd $folder && python3 -m pip install --require-hashes --no-deps --target site -r requirements.txt"
  cp "$lock" "$folder/site/.leasehold-lock"
}

test_tools() {
  test_clients
  have cargo-nextest && return
  CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo_install "$CACHE" cargo-nextest \
    --no-default-features --features default-no-update ||
    die 'cargo-nextest could not be installed' 'cargo install cargo-nextest --locked'
}
