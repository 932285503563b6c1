//! `--role`, `--backend`, `--prefix`: the grants of a user or token.

use clap::builder::PossibleValuesParser;
use domain::access::{Grant, Role};
use domain::names::BackendName;

#[derive(Debug, clap::Args)]
pub(super) struct Granted {
    /// Role: what the user or token may do
    #[arg(long, value_name = "ROLE", hide_possible_values = false, value_parser = PossibleValuesParser::new(Role::ALL.map(Role::as_str)))]
    role: String,
    /// Only on this backend; may be given several times
    #[arg(long, value_name = "NAME", value_parser = backend)]
    backend: Vec<BackendName>,
    /// Only resources of this prefix, on whole segments; may be given several times
    #[arg(long, value_name = "PREFIX")]
    prefix: Vec<String>,
}

fn backend(text: &str) -> Result<BackendName, String> {
    BackendName::parse(text).map_err(|error| error.to_string())
}

impl Granted {
    /// One grant for each combination of backend and prefix.
    pub(super) fn grants(&self) -> Vec<Grant> {
        let Some(role) = Role::parse(&self.role) else {
            return Vec::new();
        };
        let backends = options(&self.backend);
        let prefixes = options(&self.prefix);
        let pairs = backends
            .iter()
            .flat_map(|backend| prefixes.iter().map(move |prefix| (backend, prefix)));
        pairs
            .map(|(backend, prefix)| Grant {
                role,
                backend: backend.clone(),
                prefix: prefix.clone(),
            })
            .collect()
    }
}

/// No value given: no restriction.
fn options<T: Clone>(given: &[T]) -> Vec<Option<T>> {
    if given.is_empty() {
        vec![None]
    } else {
        given.iter().cloned().map(Some).collect()
    }
}

/// For example `operator on cache, tenant_1:`.
pub(super) fn grants_text(grants: &[Grant]) -> String {
    let grant_text = |grant: &Grant| {
        let mut text = grant.role.as_str().to_owned();
        if let Some(backend) = &grant.backend {
            text = format!("{text} on {backend}");
        }
        if let Some(prefix) = &grant.prefix {
            text = format!("{text} for {}", domain::escape::visible(prefix));
        }
        text
    };
    grants.iter().map(grant_text).collect::<Vec<_>>().join(", ")
}
