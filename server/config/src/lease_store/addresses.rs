//! The addresses of `lease.store`: one text, or a list of shards. Checks the set as a whole.

use super::{EtcdAddress, PostgresAddress};
use crate::limits::SHARDS_MAX;
use crate::provenance::Origin;
use crate::reader::Section;
use crate::value_tree::display_value;

const KEY: &str = "store";
const FITS: &str = "store = \"etcd://a:2379,b:2379,c:2379/leasehold/\" (etcds:// for TLS): the client addresses of all \
     members, and the prefix of the keys, which ends with /; or \"postgres://user@host/database\"; or a list of 2, 4, 8 … \
     64 of one kind";

pub(super) enum Addresses {
    Etcd(Vec<EtcdAddress>),
    Postgres(Vec<PostgresAddress>),
}

impl Addresses {
    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        let node = section.node(KEY)?;
        let texts = match (node.list(), node.text()) {
            (Some(_), _) => section.texts(KEY, node, FITS, false)?,
            (None, Some(text)) => vec![(text.to_owned(), node.origin.clone())],
            (None, None) => {
                let found = format!("found {}", node.describe(false));
                section.error_at(KEY, &node.origin, found, format!("Write {FITS}."));
                return None;
            }
        };
        let addresses = parse_all(&texts);
        match addresses {
            Ok(addresses) => {
                let shown: Vec<String> = addresses
                    .shown()
                    .iter()
                    .map(|address| format!("{address:?}"))
                    .collect();
                let value = match node.list() {
                    Some(_) => format!("[{}]", shown.join(", ")),
                    None => shown.concat(),
                };
                section.entry(KEY, value, &node.origin);
                Some(addresses)
            }
            Err((origin, message, remedy)) => {
                section.error_at(KEY, &origin, message, remedy);
                None
            }
        }
    }

    fn shown(&self) -> Vec<String> {
        match self {
            Self::Etcd(all) => all.iter().map(ToString::to_string).collect(),
            Self::Postgres(all) => all.iter().map(ToString::to_string).collect(),
        }
    }
}

type Mistake = (Origin, String, String);

fn parse_all(texts: &[(String, Origin)]) -> Result<Addresses, Mistake> {
    let Some((first, origin)) = texts.first() else {
        return Ok(Addresses::Postgres(Vec::new()));
    };
    let is_etcd = EtcdAddress::is_etcd(first);
    for (text, origin) in texts {
        check_kind(text, origin, is_etcd)?;
    }
    let invalid = |text: &str, origin: &Origin, why: String| {
        let message = format!("{} {why}", display_value(text));
        (origin.clone(), message, format!("Write {FITS}."))
    };
    let addresses = if is_etcd {
        let parse = |(text, origin): &(String, Origin)| {
            EtcdAddress::parse(text).map_err(|why| invalid(text, origin, why))
        };
        Addresses::Etcd(texts.iter().map(parse).collect::<Result<_, _>>()?)
    } else {
        let parse = |(text, origin): &(String, Origin)| {
            PostgresAddress::parse(text).map_err(|why| invalid(text, origin, why))
        };
        Addresses::Postgres(texts.iter().map(parse).collect::<Result<_, _>>()?)
    };
    let number = texts.len();
    if !number.is_power_of_two() || number > SHARDS_MAX {
        return Err((
            origin.clone(),
            format!(
                "names {number} stores, but the number of shards must be a power of two, at most {SHARDS_MAX}"
            ),
            "Name 1, 2, 4, 8, 16, 32 or 64 stores; the number cannot change after the first lease."
                .to_owned(),
        ));
    }
    match repeated(&addresses) {
        Some(place) => {
            let (text, origin) = &texts[place];
            let message = format!("{} is named twice", display_value(text));
            let remedy = "Give each shard a database of its own, or with etcd a cluster or a prefix.";
            Err((origin.clone(), message, remedy.to_owned()))
        }
        None => Ok(addresses),
    }
}

fn check_kind(text: &str, origin: &Origin, is_etcd: bool) -> Result<(), Mistake> {
    let is_postgres = PostgresAddress::SCHEMES
        .iter()
        .any(|scheme| text.starts_with(scheme));
    let shown = display_value(text);
    let (message, remedy) = match (EtcdAddress::is_etcd(text), is_postgres) {
        (true, _) if is_etcd => return Ok(()),
        (_, true) if !is_etcd => return Ok(()),
        (true, _) | (_, true) => (
            format!("{shown} is of another kind than the first store"),
            "Use either Postgres databases or etcd clusters for all shards.".to_owned(),
        ),
        _ if text.starts_with("sqlite:") => (
            format!("{shown} is an SQLite file, which only one server can use"),
            "Remove lease.store: leases in SQLite are in the file of `store`.".to_owned(),
        ),
        _ => (
            format!("{shown} is neither an etcd:// nor an etcds:// nor a postgres:// address"),
            format!("Write {FITS}."),
        ),
    };
    Err((origin.clone(), message, remedy))
}

/// Position of an address that names the same store as an earlier one. Start compares the stores themselves.
fn repeated(addresses: &Addresses) -> Option<usize> {
    let is_again = |place: &usize| match addresses {
        Addresses::Postgres(all) => {
            let earlier = &all[..*place];
            earlier.iter().any(|one| one.database() == all[*place].database())
        }
        Addresses::Etcd(all) => {
            let EtcdAddress { endpoints, prefix } = &all[*place];
            let shares = |one: &EtcdAddress| one.endpoints.iter().any(|at| endpoints.contains(at));
            let earlier = &all[..*place];
            earlier.iter().any(|one| one.prefix == *prefix && shares(one))
        }
    };
    let number = match addresses {
        Addresses::Postgres(all) => all.len(),
        Addresses::Etcd(all) => all.len(),
    };
    (1..number).find(is_again)
}
