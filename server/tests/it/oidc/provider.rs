//! A small identity provider: discovery, keys, the page that asks users, and the exchange of codes; with a key of its own.

use crate::support::aside;
use std::collections::HashMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::{Form, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use openidconnect::core::{CoreJwsSigningAlgorithm, CoreRsaPrivateSigningKey};
use openidconnect::{JsonWebKeyId, PrivateSigningKey as _};
use runtime::clock::Clock;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) const CLIENT: &str = "leasehold";
pub(crate) const SECRET: &str = "the client's own secret";

/// The fault of the next ID token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    Nothing,
    Nonce,
    Issuer,
    Audience,
    Expired,
    NotYetValid,
    AlgorithmNone,
    PublicKeyAsSecret,
    OtherKey,
    UnknownKey,
    /// By the key that was good before the last change.
    FirstKey,
    Payload,
    NoSubject,
    AuthorizedParty,
    IssuedInTheFuture,
    /// It names no key at all.
    NoKeys,
    /// It redeems a code more than once.
    ReusableCodes,
}

/// The user at the provider's page.
#[derive(Debug, Clone)]
pub(super) struct Visitor {
    pub(super) subject: &'static str,
    pub(super) name: &'static str,
    pub(super) groups: Vec<&'static str>,
    /// Seconds since the last sign-in at the provider; none: the provider does not report it.
    pub(super) proved_s_ago: Option<i64>,
}

#[derive(Clone)]
struct Code {
    challenge: String,
    nonce: String,
    redirect: String,
    is_asked_again: bool,
}

struct Inner {
    issuer: String,
    key: CoreRsaPrivateSigningKey,
    /// The key that comes after it.
    next_key: CoreRsaPrivateSigningKey,
    is_rotated: AtomicBool,
    other: CoreRsaPrivateSigningKey,
    public_pem: Vec<u8>,
    clock: Clock,
    visitor: Mutex<Visitor>,
    lie: Mutex<Lie>,
    codes: Mutex<HashMap<String, Code>>,
}

#[derive(Clone)]
pub(crate) struct Provider(Arc<Inner>);

fn openssl(args: &[&str], input: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut child = Command::new("openssl")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl is not installed; install it with: apt-get install -y openssl");
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap().stdout
}

fn new_key(name: &str) -> (CoreRsaPrivateSigningKey, Vec<u8>) {
    let pem = openssl(&["genrsa", "-traditional", "2048"], b"");
    let public = openssl(&["rsa", "-pubout"], &pem);
    let id = Some(JsonWebKeyId::new(name.to_owned()));
    let key = CoreRsaPrivateSigningKey::from_pem(std::str::from_utf8(&pem).unwrap(), id).unwrap();
    (key, public)
}

impl Provider {
    /// Serves until the guard is dropped.
    pub(crate) async fn start() -> (Self, DropGuard) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let (key, public_pem) = new_key("first");
        let provider = Self(Arc::new(Inner {
            issuer,
            key,
            next_key: new_key("second").0,
            is_rotated: AtomicBool::new(false),
            other: new_key("first").0,
            public_pem,
            clock: Clock::start(),
            visitor: Mutex::new(Visitor {
                subject: "s-1",
                name: "ada",
                groups: vec!["lock-operators"],
                proved_s_ago: Some(5),
            }),
            lie: Mutex::new(Lie::Nothing),
            codes: Mutex::default(),
        }));
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(describe))
            .route("/keys", get(keys))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(provider.clone());
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        aside(async move {
            axum::serve(listener, router)
                .with_graceful_shutdown(stopped)
                .await
        });
        (provider, stop.drop_guard())
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.0.issuer
    }

    pub(super) fn visit(&self, visitor: Visitor) {
        *self.0.visitor.lock().unwrap() = visitor;
    }

    pub(super) fn visitor(&self) -> Visitor {
        self.0.visitor.lock().unwrap().clone()
    }

    pub(crate) fn lie(&self, lie: Lie) {
        *self.0.lie.lock().unwrap() = lie;
    }

    /// From now on it signs with its next key, and no longer publishes the first.
    pub(super) fn rotate(&self) {
        self.0.is_rotated.store(true, Ordering::SeqCst);
    }

    fn key(&self) -> (&'static str, &CoreRsaPrivateSigningKey) {
        if self.0.is_rotated.load(Ordering::SeqCst) {
            ("second", &self.0.next_key)
        } else {
            ("first", &self.0.key)
        }
    }

    fn claims(&self, code: &Code) -> Value {
        let now = self.0.clock.now().wall.timestamp();
        let visitor = self.visitor();
        let mut claims = json!({
            "iss": self.0.issuer, "sub": visitor.subject, "aud": CLIENT, "exp": now + 300, "iat": now,
            "nonce": code.nonce, "preferred_username": visitor.name, "groups": visitor.groups,
            "email": format!("{}@example.com", visitor.name),
        });
        let proved_s_ago = if code.is_asked_again {
            visitor.proved_s_ago.map(|_| 0)
        } else {
            visitor.proved_s_ago
        };
        if let Some(ago) = proved_s_ago {
            claims["auth_time"] = json!(now - ago);
        }
        match *self.0.lie.lock().unwrap() {
            Lie::Nonce => claims["nonce"] = json!("another"),
            Lie::Issuer => claims["iss"] = json!("http://127.0.0.1:1"),
            Lie::Audience => claims["aud"] = json!("another"),
            Lie::AuthorizedParty => {
                claims["azp"] = json!("another");
            }
            Lie::Expired => claims["exp"] = json!(now - 120),
            Lie::NotYetValid => claims["nbf"] = json!(now + 600),
            Lie::IssuedInTheFuture => claims["iat"] = json!(now + 600),
            Lie::NoSubject => {
                claims.as_object_mut().unwrap().remove("sub");
            }
            _ => {}
        }
        claims
    }

    fn id_token(&self, code: &Code) -> String {
        let lie = *self.0.lie.lock().unwrap();
        let (algorithm, kid) = match lie {
            Lie::AlgorithmNone => ("none", "first"),
            Lie::PublicKeyAsSecret => ("HS256", "first"),
            Lie::UnknownKey => ("RS256", "never heard of"),
            Lie::FirstKey => ("RS256", "first"),
            _ => ("RS256", self.key().0),
        };
        let head = json!({"alg": algorithm, "typ": "JWT", "kid": kid});
        let mut claims = self.claims(code);
        let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encoded(&head), encoded(&claims));
        let by = |key: &CoreRsaPrivateSigningKey| {
            key.sign(&CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256, signed.as_bytes())
                .unwrap()
        };
        let signature = match lie {
            Lie::AlgorithmNone => Vec::new(),
            Lie::PublicKeyAsSecret => hmac(&self.0.public_pem, signed.as_bytes()),
            Lie::OtherKey => by(&self.0.other),
            Lie::FirstKey => by(&self.0.key),
            _ => by(self.key().1),
        };
        let body = match lie {
            Lie::Payload => {
                claims["groups"] = json!(["lock-admins"]);
                format!("{}.{}", encoded(&head), encoded(&claims))
            }
            _ => signed.clone(),
        };
        format!("{body}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// HMAC-SHA256, as RFC 2104 has it.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0; 64];
    let key = if key.len() > 64 {
        Sha256::digest(key).to_vec()
    } else {
        key.to_vec()
    };
    block[..key.len()].copy_from_slice(&key);
    let pad = |byte: u8| block.map(|one| one ^ byte);
    let inner = Sha256::digest([&pad(0x36)[..], text].concat());
    Sha256::digest([&pad(0x5c)[..], &inner[..]].concat()).to_vec()
}

async fn describe(State(provider): State<Provider>) -> Json<Value> {
    let issuer = provider.issuer();
    Json(json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        // It also offers a shared secret, which the console must not use.
        "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
    }))
}

async fn keys(State(provider): State<Provider>) -> Json<Value> {
    if *provider.0.lie.lock().unwrap() == Lie::NoKeys {
        return Json(json!({"keys": []}));
    }
    let key = provider.key().1.as_verification_key();
    Json(json!({"keys": [key]}))
}

/// No login form: the user is the one that the test set.
async fn authorize(
    State(provider): State<Provider>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    let right = query["client_id"] == CLIENT
        && query["response_type"] == "code"
        && query["code_challenge_method"] == "S256"
        && query["scope"].split(' ').any(|scope| scope == "openid");
    if !right {
        return (StatusCode::BAD_REQUEST, format!("{query:?}")).into_response();
    }
    let code = runtime::random::id();
    let known = Code {
        challenge: query["code_challenge"].clone(),
        nonce: query["nonce"].clone(),
        redirect: query["redirect_uri"].clone(),
        is_asked_again: query.get("prompt").is_some_and(|prompt| prompt == "login"),
    };
    provider.0.codes.lock().unwrap().insert(code.clone(), known);
    let back = reqwest::Url::parse_with_params(
        &query["redirect_uri"],
        [("code", &code), ("state", &query["state"])],
    );
    Redirect::to(back.unwrap().as_str()).into_response()
}

async fn token(
    State(provider): State<Provider>,
    headers: HeaderMap,
    Form(query): Form<HashMap<String, String>>,
) -> Response {
    let refused = |error: &str| (StatusCode::BAD_REQUEST, Json(json!({"error": error}))).into_response();
    let secret: String = url::form_urlencoded::byte_serialize(SECRET.as_bytes()).collect();
    let expected = format!("Basic {}", STANDARD.encode(format!("{CLIENT}:{secret}")));
    if headers
        .get(header::AUTHORIZATION)
        .is_none_or(|value| value != expected.as_str())
    {
        return refused("invalid_client");
    }
    let is_reusable = *provider.0.lie.lock().unwrap() == Lie::ReusableCodes;
    let mut codes = provider.0.codes.lock().unwrap();
    let code = codes.get(&query["code"]).cloned();
    if !is_reusable {
        codes.remove(&query["code"]);
    }
    drop(codes);
    let Some(code) = code else {
        return refused("invalid_grant");
    };
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(query["code_verifier"].as_bytes()));
    if challenge != code.challenge || query["redirect_uri"] != code.redirect {
        return refused("invalid_grant");
    }
    Json(json!({
        "access_token": "for nothing",
        "token_type": "Bearer",
        "expires_in": 300,
        "id_token": provider.id_token(&code),
    }))
    .into_response()
}
