//! Cached properties of the children of one node, in one block of bytes: an ensemble may have 100,000 contenders. Pure.

use domain::names::OwnerId;

use super::contender_cache::{Known, KnownChild, KnownChildren, KnownOwner, NameKey};
use super::node::{HIDDEN_DATA, LARGE_DATA, OwnerRead};

/// One record per child: name and czxid, 8 bytes each; one of the constants below; then, unless the owner is unread, session (8) and
/// version; then, of a text, its length and itself. Version and length take one byte, or after [`LONG`] four.
#[derive(Default)]
pub(super) struct PackedChildren(Box<[u8]>);

const UNREAD: u8 = 0;
const TEXT: u8 = 1;
const SESSION: u8 = 2;
const LARGE: u8 = 3;
const HIDDEN: u8 = 4;
const LONG: u8 = u8::MAX;

/// The number of [`Known::Folder`]: no transaction has this number.
const FOLDER: i64 = -1;

impl PackedChildren {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn pack(children: KnownChildren) -> Self {
        let mut bytes = Vec::new();
        for (name, child) in children {
            bytes.extend(name.0.to_le_bytes());
            let czxid = match child.known {
                Known::Contender { czxid } => czxid,
                Known::Folder => FOLDER,
            };
            bytes.extend(czxid.to_le_bytes());
            match child.owner {
                None => bytes.push(UNREAD),
                Some(owner) => pack_owner(&owner, &mut bytes),
            }
        }
        Self(bytes.into_boxed_slice())
    }

    pub(super) fn unpack(&self) -> KnownChildren {
        let mut rest = PackedBytes(&self.0);
        std::iter::from_fn(|| rest.child()).collect()
    }
}

fn pack_owner(KnownOwner { version, read }: &KnownOwner, bytes: &mut Vec<u8>) {
    let kind = match read.note {
        Some(LARGE_DATA) => LARGE,
        Some(_) => HIDDEN,
        None if *read == OwnerRead::by_session(read.session, None) => SESSION,
        None => TEXT,
    };
    bytes.push(kind);
    bytes.extend(read.session.to_le_bytes());
    pack_number(*version, bytes);
    if kind == TEXT {
        let text = read.owner.as_str().as_bytes();
        // An owner has at most 1,024 characters.
        pack_number(i32::try_from(text.len()).unwrap_or(i32::MAX), bytes);
        bytes.extend(text);
    }
}

fn pack_number(number: i32, bytes: &mut Vec<u8>) {
    match u8::try_from(number) {
        Ok(short) if short < LONG => bytes.push(short),
        _ => {
            bytes.push(LONG);
            bytes.extend(number.to_le_bytes());
        }
    }
}

/// Bytes that are not unpacked yet.
struct PackedBytes<'a>(&'a [u8]);

impl<'a> PackedBytes<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn number(&mut self) -> Option<i32> {
        match self.take()? {
            [LONG] => self.take().map(i32::from_le_bytes),
            [short] => Some(i32::from(short)),
        }
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn child(&mut self) -> Option<(NameKey, KnownChild)> {
        let name = NameKey(u64::from_le_bytes(self.take()?));
        let known = match i64::from_le_bytes(self.take()?) {
            FOLDER => Known::Folder,
            czxid => Known::Contender { czxid },
        };
        let owner = match self.take()? {
            [UNREAD] => None,
            [kind] => Some(self.owner(kind)?),
        };
        Some((name, KnownChild { known, owner }))
    }

    fn owner(&mut self, kind: u8) -> Option<KnownOwner> {
        let session = i64::from_le_bytes(self.take()?);
        let version = self.number()?;
        let read = match kind {
            TEXT => OwnerRead {
                owner: OwnerId::new(self.text()?),
                session,
                note: None,
            },
            LARGE => OwnerRead::by_session(session, Some(LARGE_DATA)),
            HIDDEN => OwnerRead::by_session(session, Some(HIDDEN_DATA)),
            _ => OwnerRead::by_session(session, None),
        };
        Some(KnownOwner { version, read })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::contender_cache::ContenderCache;

    #[test]
    fn children_are_unpacked_as_they_were_packed() {
        // Each way to know an owner, texts one after the other, and a folder.
        let cache = ContenderCache::default();
        let text = |owner: &str, session| OwnerRead {
            owner: OwnerId::new(owner),
            session,
            note: None,
        };
        let owners = [
            Some(text("wörker-1", 7)),
            Some(OwnerRead::by_session(8, None)),
            Some(text("worker-2", 9)),
            Some(text(&"w".repeat(400), 12)),
            Some(OwnerRead::by_session(10, Some(LARGE_DATA))),
            Some(OwnerRead::by_session(11, Some(HIDDEN_DATA))),
            None,
        ];
        let child = |(read, czxid): (Option<OwnerRead>, i64)| {
            let child = KnownChild {
                known: Known::Contender { czxid },
                owner: read.map(|read| KnownOwner {
                    version: i32::try_from(czxid * 100).unwrap(),
                    read,
                }),
            };
            (cache.name(&czxid.to_string()), child)
        };
        let mut children: KnownChildren = owners.into_iter().zip(1..).map(child).collect();
        let folder = KnownChild {
            known: Known::Folder,
            owner: None,
        };
        children.insert(cache.name("folder"), folder);
        assert_eq!(PackedChildren::pack(children.clone()).unpack(), children);
    }
}
