//! Whether receivers can be reached, without telling them anything: name, guard, connection and TLS, as a message would go.
//! What is asked for is the first page of their host, so that no path, which may be a secret, is sent to anybody.

use url::Url;

use super::courier::Courier;
use super::guard::Guard;
use super::receivers;
use super::vault::Vault;
use crate::config::NotifyConfig;
use crate::db::{Db, on_either};

/// One address of one receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    pub receiver: String,
    /// As far as people may see it.
    pub address: String,
    /// None: something answers there.
    pub fault: Option<Unreached>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    pub why: String,
    pub mend: String,
}

/// Every receiver that the store holds and the vault opens.
///
/// # Errors
/// The store does not answer, or has no such table yet.
pub async fn reach(db: &Db, vault: &Vault, config: &NotifyConfig) -> Result<Vec<Reached>, sqlx::Error> {
    let courier = Courier::new(&Guard::new(&config.allow));
    let names: Vec<String> = on_either!(db, Db, |pool| {
        let select = sqlx::query_scalar("SELECT name FROM receivers ORDER BY name");
        select.fetch_all(pool).await?
    });
    let mut asked = Vec::new();
    for name in names {
        let found = receivers::find(db, vault, "name = $1", &name).await?;
        if let Some(receiver) = found {
            for address in &receiver.urls {
                asked.push((
                    name.clone(),
                    address.shown(receiver.kind),
                    first_page(address.url()),
                ));
            }
        }
    }
    let courier = &courier;
    let asked = asked.into_iter().map(async |(receiver, address, page)| Reached {
        fault: courier.reach(&page).await.err(),
        receiver,
        address,
    });
    Ok(futures::future::join_all(asked).await)
}

fn first_page(url: &Url) -> Url {
    let mut page = url.clone();
    page.set_path("/");
    page.set_query(None);
    page
}
