//! One page of the list of locks.

use domain::query::{InventoryPage, InventoryQuery};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::error::ApiError;
use super::payload::Answer;
use crate::console::ConsoleError;
use crate::links;

/// `query` is a query string as the address of the page has it; what it may hold is [`InventoryQuery`]'s to say.
#[server(name = GetInventory, prefix = "/api", endpoint = "inventory", input = GetUrl, output = Answer)]
pub async fn inventory(query: String) -> Result<InventoryPage, ApiError> {
    let asked = super::error::ask()?;
    match parse(&query) {
        Ok(query) => asked.answer(asked.console.inventory(query).await),
        Err(error) => asked.answer(Err(error)),
    }
}

/// # Errors
/// [`ConsoleError::BadQuery`] with the field that does not fit.
pub fn parse(query: &str) -> Result<InventoryQuery, ConsoleError> {
    let pairs = links::pairs(query);
    let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    InventoryQuery::from_pairs(pairs).map_err(ConsoleError::BadQuery)
}
