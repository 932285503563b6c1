//! Connectivity check of receivers without a message: name, guard, connection and TLS as for a message. Requests
//! only `/` of their host, because the path may be a secret.

use url::Url;

use super::http_sender::WebhookClient;
use super::receivers;
use super::secret_box::SecretBox;
use super::ssrf_guard::SsrfGuard;
use config::NotifyConfig;
use runtime::db::{Db, on_either};

/// One address of one receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reachable {
    pub receiver: String,
    /// Address with its secret parts removed.
    pub address: String,
    /// `None`: a server answers there.
    pub fault: Option<Unreachable>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreachable {
    pub why: String,
    pub remedy: String,
}

/// Checks every receiver whose secrets can be decrypted.
///
/// # Errors
/// The store does not answer or has no such table yet.
pub async fn reach(db: &Db, vault: &SecretBox, config: &NotifyConfig) -> Result<Vec<Reachable>, sqlx::Error> {
    let courier = WebhookClient::new(&SsrfGuard::new(&config.allowed_networks));
    let names: Vec<String> = on_either!(db, Db, |pool| {
        let select = sqlx::query_scalar("SELECT name FROM receivers ORDER BY name");
        select.fetch_all(pool).await?
    });
    let mut checks = Vec::new();
    for name in names {
        let found = receivers::find(db, vault, "name = $1", &name).await?;
        if let Some(receiver) = found {
            for address in &receiver.urls {
                checks.push((
                    name.clone(),
                    address.display_address(receiver.kind),
                    first_page(address.url()),
                ));
            }
        }
    }
    let courier = &courier;
    let checks = checks
        .into_iter()
        .map(async |(receiver, address, page)| Reachable {
            fault: courier.reach(&page).await.err(),
            receiver,
            address,
        });
    Ok(futures::future::join_all(checks).await)
}

fn first_page(url: &Url) -> Url {
    let mut page = url.clone();
    page.set_path("/");
    page.set_query(None);
    page
}
