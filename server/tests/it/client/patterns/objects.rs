//! An object store with conditional writes: a folder of files with metadata.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Mutex;

#[derive(Debug)]
enum Refused {
    Stale,
    #[expect(dead_code, reason = "shown when a test fails")]
    Store(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Store(error)
    }
}

struct Object {
    /// From its metadata.
    fence: u64,
    etag: String,
}

trait ObjectStore {
    async fn head(&self, name: &str) -> io::Result<Option<Object>>;
    /// False when the object has another ETag, or exists although none is expected.
    async fn put_if(&self, name: &str, etag: Option<&str>, token: u64, text: &str) -> io::Result<bool>;
}

async fn put(store: &impl ObjectStore, name: &str, token: u64, text: &str) -> Result<(), Refused> {
    loop {
        let seen = store.head(name).await?;
        if seen.as_ref().is_some_and(|object| object.fence > token) {
            return Err(Refused::Stale);
        }
        // None: the object must not exist yet.
        let etag = seen.map(|object| object.etag);
        if store.put_if(name, etag.as_deref(), token, text).await? {
            return Ok(());
        }
    }
}

/// A file for each object: ETag, fence, text. Conditions hold under a lock of the whole folder.
struct Folder(PathBuf);

impl Folder {
    fn locked<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let lock = std::fs::File::create(self.0.join(".lock"))?;
        lock.lock()?;
        work()
    }

    fn read(&self, name: &str) -> io::Result<Option<(Object, String)>> {
        let mut all = String::new();
        match std::fs::File::open(self.0.join(name)) {
            Ok(mut file) => file.read_to_string(&mut all)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut parts = all.splitn(3, '\n');
        let mut part = || parts.next().unwrap_or_default().to_owned();
        let (etag, fence) = (part(), part().parse().unwrap());
        Ok(Some((Object { fence, etag }, part())))
    }
}

impl ObjectStore for Folder {
    async fn head(&self, name: &str) -> io::Result<Option<Object>> {
        self.locked(|| Ok(self.read(name)?.map(|(object, _)| object)))
    }

    async fn put_if(&self, name: &str, etag: Option<&str>, token: u64, text: &str) -> io::Result<bool> {
        self.locked(|| {
            let now = self.read(name)?.map(|(object, _)| object.etag);
            if now.as_deref() != etag {
                return Ok(false);
            }
            let next = now.map_or(0, |etag| etag.parse::<u64>().unwrap() + 1);
            let mut file = std::fs::File::create(self.0.join(name))?;
            write!(file, "{next}\n{token}\n{text}")?;
            Ok(true)
        })
    }
}

/// Pauses a writer between its read and its write while another client writes.
struct Paused<'a> {
    store: &'a Folder,
    meanwhile: Mutex<Option<(u64, &'static str)>>,
}

impl ObjectStore for Paused<'_> {
    async fn head(&self, name: &str) -> io::Result<Option<Object>> {
        self.store.head(name).await
    }

    async fn put_if(&self, name: &str, etag: Option<&str>, token: u64, text: &str) -> io::Result<bool> {
        let other = self.meanwhile.lock().unwrap().take();
        if let Some((token, text)) = other {
            put(self.store, name, token, text).await.unwrap();
        }
        self.store.put_if(name, etag, token, text).await
    }
}

#[tokio::test]
async fn object_store_rejects_a_writer_paused_before_its_write() {
    // Over an existing object and over none; a pause over an older write only costs another round. Without the
    // condition the late write wins, although its token was compared.
    let folder = tempfile::tempdir().unwrap();
    let store = Folder(folder.path().to_owned());
    let text = |name: &str| store.read(name).unwrap().unwrap().1;
    let paused = |token, text| Paused {
        store: &store,
        meanwhile: Mutex::new(Some((token, text))),
    };
    put(&store, "a", 1, "one").await.unwrap();
    put(&store, "a", 1, "one again").await.unwrap();
    for name in ["a", "fresh"] {
        let late = put(&paused(2, "two"), name, 1, "late").await.unwrap_err();
        assert!(matches!(late, Refused::Stale), "{late:?}");
        assert_eq!(text(name), "two");
    }
    put(&paused(2, "two more"), "a", 3, "three").await.unwrap();
    assert_eq!(text("a"), "three");
    let seen = store.head("b").await.unwrap();
    assert!(
        seen.is_none_or(|object| object.fence <= 1),
        "compared, and then paused"
    );
    put(&store, "b", 2, "two").await.unwrap();
    let etag = store.head("b").await.unwrap().unwrap().etag;
    assert!(store.put_if("b", Some(&etag), 1, "late").await.unwrap());
    assert_eq!(
        text("b"),
        "late",
        "a write that is not bound to what was compared"
    );
}
