//! The design gallery: the real pages and the real inventory over made-up observations that show every state, for eyes and
//! browser tests.
//!
//! `cargo run --example gallery -- [full|many|empty|down|starting|calm|unconfigured|deadlock]` prints its address. While it runs,
//! `POST /gallery/scene/{scene}` changes the scene and `POST /gallery/stream/{on|off|silent}` the stream. No lock system is
//! behind it: it shows only how the pages look and behave.

mod backends;
mod canned;
mod charts;
mod deadlock;
mod detail;
mod events;
mod feed;
mod hostile;
mod locks;
mod redlock;
mod scenes;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use leasehold::http::ConsoleFor;

use crate::canned::Canned;
use crate::events::Stream;
use crate::scenes::Scene;

type Shared = Arc<Canned>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let scene = std::env::args()
        .nth(1)
        .map_or(Some(Scene::Full), |name| Scene::parse(&name));
    let scene = scene.ok_or_else(|| anyhow::anyhow!("scenes are {}", Scene::NAMES.join(", ")))?;
    let canned = Arc::new(Canned::new(scene));
    let gallery_routes = Router::new()
        .route("/v1/events", get(events::stream))
        .route("/gallery/scene/{name}", post(set_scene))
        .route("/gallery/stream/{name}", post(set_stream))
        .with_state(canned.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    announce(&format!("http://{}", listener.local_addr()?));
    axum::serve(
        listener,
        gallery_routes.merge(leasehold::http::pages::router(ConsoleFor::same_for_all(canned))),
    )
    .await?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the address is what this program prints")]
fn announce(address: &str) {
    println!("{address}");
}

async fn set_scene(State(canned): State<Shared>, Path(name): Path<String>) -> StatusCode {
    let Some(scene) = Scene::parse(&name) else {
        return StatusCode::NOT_FOUND;
    };
    canned.set_scene(scene);
    StatusCode::NO_CONTENT
}

async fn set_stream(State(canned): State<Shared>, Path(name): Path<String>) -> StatusCode {
    let Some(stream) = Stream::parse(&name) else {
        return StatusCode::NOT_FOUND;
    };
    canned.set_stream(stream);
    StatusCode::NO_CONTENT
}
