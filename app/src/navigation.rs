//! Entries of the header and of the settings, and the lookup by path. Their tables are in `pages.rs`: header, phone tabs,
//! keyboard shortcuts and the current page read them; a test of the server compares their permissions with the table of routes.

use domain::access::Permission;
use leptos::prelude::*;
use leptos_router::hooks::use_location;

use crate::pages::{PAGES, SETTINGS};

/// The query string of the page at `path`. During navigation the page stays for a moment under the URL of the next one: it then
/// keeps its last query string.
pub fn use_search_of(path: &'static str) -> Memo<String> {
    let location = use_location();
    Memo::new(move |before: Option<&String>| match before {
        Some(before) if location.pathname.with(|now| now != path) => before.clone(),
        _ => location.search.get(),
    })
}

/// One page of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NavEntry {
    pub path: &'static str,
    pub label: &'static str,
    /// `None`: every signed-in user.
    pub permission: Option<Permission>,
    /// The key after `g`.
    pub shortcut: char,
    /// A tab of the phone; the others are behind `More`.
    pub is_tab: bool,
    /// Other paths that belong to this page, each with its subpaths.
    pub(crate) also: &'static [&'static str],
    /// Number shown with the label.
    pub count: Option<NavCount>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NavCount {
    /// Held locks.
    Locks,
    /// Alert groups that fire.
    FiringGroups,
}

/// An entry for users with `permission`; on a phone it is behind `More`.
pub(crate) const fn page(
    path: &'static str,
    label: &'static str,
    shortcut: char,
    permission: Permission,
) -> NavEntry {
    NavEntry {
        path,
        label,
        permission: Some(permission),
        shortcut,
        is_tab: false,
        also: &[],
        count: None,
    }
}

/// One page of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsEntry {
    pub path: &'static str,
    pub label: &'static str,
    /// `None`: every signed-in user.
    pub permission: Option<Permission>,
    /// Changes require a recent authentication.
    pub needs_fresh: bool,
}

/// An entry for admins.
pub(crate) const fn section(path: &'static str, label: &'static str, needs_fresh: bool) -> SettingsEntry {
    SettingsEntry {
        path,
        label,
        permission: Some(Permission::Administer),
        needs_fresh,
    }
}

/// Length of `prefix` if `path` is it or below it.
fn matched_len(path: &str, prefix: &str) -> Option<usize> {
    let rest = path.strip_prefix(prefix)?;
    (rest.is_empty() || (prefix != "/" && rest.starts_with('/'))).then_some(prefix.len())
}

/// The page of the header that `path` belongs to.
pub fn current_page(path: &str) -> Option<&'static NavEntry> {
    let length = |entry: &&NavEntry| {
        let all = std::iter::once(&entry.path).chain(entry.also);
        all.filter_map(|prefix| matched_len(path, prefix)).max()
    };
    PAGES
        .iter()
        .filter(|entry| length(entry).is_some())
        .max_by_key(length)
}

/// The section of the settings that `path` belongs to.
pub fn current_section(path: &str) -> Option<&'static SettingsEntry> {
    SETTINGS
        .iter()
        .filter(|entry| matched_len(path, entry.path).is_some())
        .max_by_key(|entry| entry.path.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_belongs_to_the_nearest_page() {
        let label = |path| current_page(path).map(|entry| entry.label);
        assert_eq!(label("/"), Some("Overview"));
        assert_eq!(label("/locks/cache/a"), Some("Locks"));
        assert_eq!(label("/unlock/cache/a"), Some("Locks"));
        assert_eq!(label("/alerts/rules/new"), Some("Alerts"));
        assert_eq!(label("/alerts/receivers/slack"), Some("Settings"));
        assert_eq!(label("/lockstep"), None);
        let section = |path| current_section(path).map(|entry| entry.label);
        assert_eq!(section("/settings/users/u_1"), Some("Users"));
        assert_eq!(section("/settings"), Some("You"));
        assert_eq!(section("/alerts"), None);
    }

    #[test]
    fn shortcuts_are_unique() {
        let mut keys: Vec<char> = PAGES.iter().map(|entry| entry.shortcut).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), PAGES.len());
        assert_eq!(PAGES.iter().filter(|entry| entry.is_tab).count(), 4);
    }
}
