//! What is kept of the children of one node, in two blocks: an ensemble may have 100,000 contenders. Pure.

use domain::names::OwnerId;

use super::contender_cache::{Known, KnownChild, KnownChildren, KnownOwner, NameKey};
use super::node::{HIDDEN_DATA, LARGE_DATA, OwnerRead};

/// [`KnownChildren`] in little memory.
#[derive(Default)]
pub(super) struct PackedChildren {
    records: Box<[ChildRecord]>,
    /// The texts of all owners, in the order of the records.
    texts: Box<str>,
}

struct ChildRecord {
    name: NameKey,
    czxid: i64,
    session: i64,
    version: i32,
    text_bytes: u16,
    owner: OwnerRecord,
}

/// What an owner was read from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnerRecord {
    Unread,
    Text,
    Session,
    LargeData,
    HiddenData,
}

/// The number of [`Known::Folder`]: no transaction has this number.
const FOLDER: i64 = -1;

impl PackedChildren {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn pack(children: KnownChildren) -> Self {
        let mut texts = String::new();
        let record = |(name, child): (NameKey, KnownChild)| {
            let mut record = ChildRecord {
                name,
                czxid: match child.known {
                    Known::Contender { czxid } => czxid,
                    Known::Folder => FOLDER,
                },
                session: 0,
                version: 0,
                text_bytes: 0,
                owner: OwnerRecord::Unread,
            };
            if let Some(KnownOwner { version, read }) = child.owner {
                record.session = read.session;
                record.version = version;
                record.owner = match read.note {
                    Some(LARGE_DATA) => OwnerRecord::LargeData,
                    Some(_) => OwnerRecord::HiddenData,
                    None if read == OwnerRead::by_session(read.session, None) => OwnerRecord::Session,
                    None => OwnerRecord::Text,
                };
                // An owner has at most 1,024 characters.
                let text = Some(read.owner.as_str()).filter(|_| record.owner == OwnerRecord::Text);
                let length = text.map_or(Ok(0), |text| u16::try_from(text.len()));
                match length {
                    Ok(length) => record.text_bytes = length,
                    Err(_) => record.owner = OwnerRecord::Unread,
                }
                texts.extend(text.filter(|_| length.is_ok()));
            }
            record
        };
        Self {
            records: children.into_iter().map(record).collect(),
            texts: texts.into_boxed_str(),
        }
    }

    pub(super) fn unpack(&self) -> KnownChildren {
        let mut rest = &*self.texts;
        let child = |record: &ChildRecord| {
            let (text, after) = rest.split_at(usize::from(record.text_bytes));
            rest = after;
            let child = KnownChild {
                known: match record.czxid {
                    FOLDER => Known::Folder,
                    czxid => Known::Contender { czxid },
                },
                owner: record.read(text).map(|read| KnownOwner {
                    version: record.version,
                    read,
                }),
            };
            (record.name, child)
        };
        self.records.iter().map(child).collect()
    }
}

impl ChildRecord {
    fn read(&self, text: &str) -> Option<OwnerRead> {
        let by_session = |note| Some(OwnerRead::by_session(self.session, note));
        match self.owner {
            OwnerRecord::Unread => None,
            OwnerRecord::Text => Some(OwnerRead {
                owner: OwnerId::new(text),
                session: self.session,
                note: None,
            }),
            OwnerRecord::Session => by_session(None),
            OwnerRecord::LargeData => by_session(Some(LARGE_DATA)),
            OwnerRecord::HiddenData => by_session(Some(HIDDEN_DATA)),
        }
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
            Some(OwnerRead::by_session(10, Some(LARGE_DATA))),
            Some(OwnerRead::by_session(11, Some(HIDDEN_DATA))),
            None,
        ];
        let child = |(read, czxid): (Option<OwnerRead>, i64)| {
            let child = KnownChild {
                known: Known::Contender { czxid },
                owner: read.map(|read| KnownOwner { version: 3, read }),
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
