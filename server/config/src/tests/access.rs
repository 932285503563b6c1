//! Access configurations that are refused, with the remedy.

use super::mistakes::each_has_one_mistake;
use super::{listen_flag, load, sources};
use crate::Config;

#[test]
fn listening_beyond_loopback_is_refused_with_the_reason() {
    // Open to all, to one network, and a name instead of an address; in the file and as a flag.
    each_has_one_mistake(&[
        (
            "listen = \"0.0.0.0:3000\"".to_owned(),
            &[
                "open to other hosts",
                "unencrypted",
                "cert_file and key_file in [tls]",
            ],
        ),
        (
            "listen = \"[::]:3000\"".to_owned(),
            &["open to other hosts", "127.0.0.1 or [::1]", "trusted in [proxy]"],
        ),
        (
            "listen = \"192.168.1.5:3000\"".to_owned(),
            &["open to other hosts"],
        ),
        (
            "listen = \"[::]:3000\"\n[proxy]\ntrusted = [\"10.0.0.0/8\"]".to_owned(),
            &["open to other hosts", "public_url = \"https://"],
        ),
        (
            "listen = \"[::]:3000\"\npublic_url = \"https://locks.example.com\"".to_owned(),
            &["open to other hosts", "trusted in [proxy]"],
        ),
        (
            "[proxy]\ntrusted = [\"0.0.0.0/0\"]".to_owned(),
            &["proxy.trusted", "covers every address"],
        ),
        (
            "listen = \"localhost:3000\"".to_owned(),
            &["not an IP address with a port"],
        ),
        ("listen = \"3000\"".to_owned(), &["not an IP address with a port"]),
    ]);
    let mut flag = sources("", &[]);
    flag.flags.push(listen_flag("0.0.0.0:80"));
    let error = Config::load(&flag).unwrap_err().to_string();
    assert!(
        error.contains("--listen: listen: \"0.0.0.0:80\" is open to other hosts"),
        "{error}"
    );
}

#[test]
fn a_public_address_needs_a_certificate_or_a_proxy() {
    // Both ways give HTTPS; half of a certificate and a public_url without TLS are errors.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("any.pem");
    std::fs::write(&file, "any").unwrap();
    let file = file.display();
    let open = "listen = \"0.0.0.0:443\"";
    let tls = format!("[tls]\ncert_file = \"{file}\"\nkey_file = \"{file}\"\n");
    let config = load(&format!("{open}\n{tls}"), &[]).unwrap();
    assert!(config.access.is_secure && config.access.tls.is_some());
    let behind =
        format!("{open}\npublic_url = \"https://l.example.com\"\n[proxy]\ntrusted = [\"10.0.0.0/8\"]");
    let config = load(&behind, &[]).unwrap();
    assert!(config.access.is_secure && config.access.tls.is_none());
    assert!(config.access.explain(config.listen).contains("10.0.0.0/8 only"));
    each_has_one_mistake(&[
        (
            format!("{open}\n[tls]\ncert_file = \"{file}\""),
            &["tls.key_file: is missing", "set key_file too"],
        ),
        (
            format!("public_url = \"http://l.example.com\"\n{tls}"),
            &["public_url: is http, but [tls] is given"],
        ),
    ]);
}

#[test]
fn an_identity_provider_needs_https_and_maps_roles() {
    // Missing keys, a plain HTTP issuer, invalid values; and a valid one with its defaults.
    let oidc = |more: &str| {
        format!("[oidc]\nissuer = \"https://id.example.com\"\nclient_id = \"leasehold\"\n{more}")
    };
    let role = "[[oidc.role]]\nvalue = \"a\"\nrole = \"viewer\"";
    each_has_one_mistake(&[
        (oidc(""), &["oidc.role: is missing", "[[oidc.role]]"]),
        (
            oidc(role).replace("https:", "http:"),
            &["oidc.issuer", "is not https", "attacker on the network"],
        ),
        (
            oidc(&role.replace("viewer", "vewer")),
            &["oidc.role[0].role", "did you mean \"viewer\"?"],
        ),
        (
            oidc(&format!("{role}\nprefix = \"\"")),
            &["oidc.role[0].prefix", "is empty"],
        ),
        (
            oidc(&format!("{role}\nbackend = \"No Name\"")),
            &["oidc.role[0].backend", "not the name of a backend"],
        ),
        (
            oidc(&format!("secret = \"s3cret\"\n{role}")),
            &["oidc.secret: there is no such key", "client_secret"],
        ),
    ]);
    let config = load(&oidc(&format!("client_secret = \"s3cret\"\n{role}")), &[]).unwrap();
    let oidc = config.access.oidc.unwrap();
    assert_eq!(
        (oidc.roles_claim.as_str(), oidc.scopes.len(), oidc.roles.len()),
        ("groups", 2, 1)
    );
    assert!(!format!("{oidc:?}").contains("s3cret"));
}
