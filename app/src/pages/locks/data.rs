//! Data of the lock list: one page of it, and the name tree.

use domain::name_tree::PrefixNode;
use domain::query::{InventoryPage, InventoryQuery};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::console::ConsoleError;
use crate::links;

/// `query` is the query string of the page's URL, as [`InventoryQuery`] parses it.
#[server(name = GetInventory, prefix = "/api", endpoint = "inventory", input = GetUrl, output = EncodedResponse)]
pub async fn inventory(query: String) -> Result<InventoryPage, ApiError> {
    let context = crate::api::error::from_context()?;
    match parse(&query) {
        Ok(query) => context.set_status(context.console.inventory(query).await),
        Err(error) => context.set_status(Err(error)),
    }
}

/// # Errors
/// [`ConsoleError::BadQuery`] with the invalid field.
pub fn parse(query: &str) -> Result<InventoryQuery, ConsoleError> {
    let pairs = links::pairs(query);
    let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    InventoryQuery::from_pairs(pairs).map_err(ConsoleError::BadQuery)
}

/// The nodes from the root to `prefix`, each with its children.
#[server(name = GetPrefixes, prefix = "/api", endpoint = "prefixes", input = GetUrl, output = EncodedResponse)]
pub async fn prefixes(prefix: String) -> Result<Vec<PrefixNode>, ApiError> {
    let context = crate::api::error::from_context()?;
    let mut nodes = Vec::new();
    for ancestor in ancestors(&prefix) {
        nodes.push(context.set_status(context.console.prefixes(ancestor).await)?);
    }
    Ok(nodes)
}

/// `a:b:c` → ``, `a:`, `a:b:`: whole segments only, at most eight, because each costs a query.
pub fn ancestors(prefix: &str) -> Vec<String> {
    let bytes = prefix.as_bytes();
    let mut found = vec![String::new()];
    let mut at = 0;
    while at < bytes.len() && found.len() < 9 {
        at += domain::name_tree::segment_len(bytes, at);
        let ends_segment = at > 0 && domain::name_tree::is_separator(bytes[at - 1]);
        if let (true, Some(text)) = (ends_segment, prefix.get(..at)) {
            found.push(text.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_are_whole_segments_from_the_root_down() {
        assert_eq!(ancestors(""), [""]);
        assert_eq!(ancestors("a:b/c"), ["", "a:", "a:b/"]);
        assert_eq!(ancestors("/locks/"), ["", "/locks/"]);
        assert_eq!(ancestors(&"a:".repeat(50)).len(), 9);
    }
}
