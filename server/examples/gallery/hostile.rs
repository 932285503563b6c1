//! Names that would hurt a careless page: markup, direction overrides, control bytes, great length, no UTF-8.

use domain::names::Resource;

use crate::locks::{CannedLock, Life};

pub(crate) fn locks() -> Vec<CannedLock> {
    let long = format!("hostile:{}:the-end", "long-name-".repeat(1024));
    let names: [&[u8]; 14] = [
        b"hostile:<img src=x onerror=alert(1)>",
        b"hostile:</title></script><script>alert(1)</script>&amp;",
        "hostile:\u{202e}gpj.exe".as_bytes(),
        "hostile:pay\u{200b}out".as_bytes(),
        b"hostile:line\nbreak\ttab\x07bell\x00nul",
        b"hostile:\xff\xfe not utf-8 \\ at all",
        b"hostile:50% off?a=b&c#d",
        b"hostile:\"quoted\" 'twice' `thrice`",
        "hostile:\u{5e9}\u{5dc}\u{5d5}\u{5dd}:\u{645}\u{631}\u{62d}\u{628}\u{627}".as_bytes(),
        "hostile:\u{1f512}\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}".as_bytes(),
        b" hostile: leading and trailing ",
        b"hostile/../../etc/passwd",
        b"..",
        long.as_bytes(),
    ];
    let mut locks: Vec<CannedLock> = names.into_iter().map(lock).collect();
    locks[0].owner = Some("<b>worker</b>\u{202e}9-rekrow".to_owned());
    locks[1].owner = Some("owner-".repeat(100));
    locks
}

fn lock(name: &[u8]) -> CannedLock {
    CannedLock {
        backend: "redis-cache",
        source: None,
        resource: Resource::from_bytes(name),
        owner: Some("mallory".to_owned()),
        held: 60_000,
        life: Life::Renewed {
            ttl: 30_000,
            every: 10_000,
            until: None,
        },
        waiters: 0,
        condition: None,
        queue: Vec::new(),
    }
}
