//! `kind = "etcd"`.

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdConfig {
    /// `endpoints`: `http://host:2379` or `https://…`.
    pub endpoints: Vec<String>,
    /// `prefixes`: where locks, mutexes and elections are kept. Default `["/locks/"]`.
    #[serde(default = "default_prefixes")]
    pub prefixes: Vec<String>,
}

fn default_prefixes() -> Vec<String> {
    vec!["/locks/".to_owned()]
}
