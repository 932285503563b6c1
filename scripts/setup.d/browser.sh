# shellcheck shell=bash
# For the end-to-end tests: Chromium without a window, with the last font of the font stack, and the npm packages of end2end/
# exactly as locked.

browser_packages() {
  have chromium-headless-shell || want_package chromium-headless-shell
  [[ -f /usr/share/fonts/truetype/dejavu/DejaVuSansCondensed.ttf ]] || want_package fonts-dejavu-extra
}

browser_tools() {
  local lock=$ROOT/end2end/package-lock.json stamp=$ROOT/end2end/node_modules/.leasehold-lock
  [[ -f $lock ]] || return 0
  cmp -s "$lock" "$stamp" && return
  local major=0
  have node && major=$(node -p 'process.versions.node.split(".")[0]')
  { ((major >= 20)) && have npm; } || die "the end-to-end tests need Node 20 or later with npm" 'install Node from https://nodejs.org'
  # The tests use Debian's Chromium, not Playwright's own browsers.
  quietly 'npm ci in end2end' env PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 \
    npm ci --prefix "$ROOT/end2end" --no-audit --no-fund ||
    die 'the npm packages could not be installed' 'cd end2end && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci'
  cp "$lock" "$stamp"
}
