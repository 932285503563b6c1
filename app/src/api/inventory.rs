//! One page of the lock list.

use domain::query::{InventoryPage, InventoryQuery};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;
use crate::console::ConsoleError;
use crate::links;

/// `query` is the query string of the page's URL, as [`InventoryQuery`] parses it.
#[server(name = GetInventory, prefix = "/api", endpoint = "inventory", input = GetUrl, output = EncodedResponse)]
pub async fn inventory(query: String) -> Result<InventoryPage, ApiError> {
    let context = super::error::from_context()?;
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
