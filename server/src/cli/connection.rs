//! Connection options of commands that call a server.

use secrecy::SecretString;
use url::Url;

#[derive(Debug, Clone, clap::Args)]
pub struct Connection {
    /// Address of the server
    #[arg(long, value_name = "URL", env = "LEASEHOLD_SERVER", default_value = "http://127.0.0.1:3000", value_parser = parse_server)]
    pub server: Url,
    /// API token. Prefer the environment variable, which other users of this machine cannot read
    #[arg(long, value_name = "TOKEN", env = "LEASEHOLD_TOKEN", hide_env_values = true, value_parser = parse_token)]
    pub token: Option<SecretString>,
    /// Allow sending the token over plain HTTP to another machine
    #[arg(long)]
    pub insecure_http: bool,
    /// Go through the proxy of `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY`, which are ignored otherwise
    #[arg(long)]
    pub use_proxy: bool,
}

fn parse_server(text: &str) -> Result<Url, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        Ok(_) => Err("an address begins with http:// or https://".to_owned()),
        Err(error) => Err(format!("{error}; an address looks like http://127.0.0.1:3000")),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "clap's parsers answer with a Result")]
fn parse_token(text: &str) -> Result<SecretString, String> {
    Ok(SecretString::from(text))
}
