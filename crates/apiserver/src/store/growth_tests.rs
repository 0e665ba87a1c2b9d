//! The store's size on disk follows what is in it, not what has been written to it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::disk::{Disk, Faults, Record};
use super::{GroupResource, ObjectKey};

/// What the files below a folder take on disk.
fn used(folder: &Path) -> u64 {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        // Files come and go while the engine merges.
        let Ok(entry) = entry else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        sum += if metadata.is_dir() { used(&entry.path()) } else { metadata.blocks() * 512 };
    }
    sum
}

struct Load {
    resource: GroupResource,
    keys: Vec<ObjectKey>,
    size: usize,
    revision: u64,
}

impl Load {
    fn new(objects: usize, size: usize) -> Self {
        let keys = (0..objects).map(|i| ObjectKey::new("ns", &format!("n{i}"))).collect();
        Self { resource: GroupResource::new("g", "things"), keys, size, revision: 0 }
    }

    fn write(&mut self, disk: &mut Disk, plane: &str) {
        let mut bytes = vec![b'x'; self.size];
        for keys in self.keys.chunks(500) {
            let mut records = Vec::new();
            self.revision += 1;
            bytes[..8].copy_from_slice(&self.revision.to_be_bytes());
            for key in keys {
                let (revision, bytes) = (self.revision, &bytes[..]);
                records.push(Record::Put {
                    plane,
                    resource: &self.resource,
                    key,
                    revision,
                    bytes,
                    ready: None,
                });
            }
            disk.write(self.revision, &records).unwrap();
        }
    }
}

/// What the engine's journals may take: it starts a new one after 64 MB, and removes the old one when a table has been written.
const JOURNALS: u64 = 128 << 20;

#[test]
fn overwriting_does_not_grow_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let (mut disk, _) = Disk::open(folder.path(), Faults::default()).unwrap();
    let mut load = Load::new(1000, 2048);
    disk.write(0, &[Record::CreatePlane("p")]).unwrap();
    let mut most = 0;
    for _ in 0..200 {
        load.write(&mut disk, "p");
        most = most.max(used(folder.path()));
    }
    // 400 MB have been written, and 2 MB are there.
    assert!(most < JOURNALS + (32 << 20), "{} MiB", most >> 20);
}

#[test]
fn a_dropped_plane_gives_its_room_back_though_nothing_follows() {
    let folder = tempfile::tempdir().unwrap();
    let (mut disk, _) = Disk::open(folder.path(), Faults::default()).unwrap();
    let mut load = Load::new(24_000, 4096);
    disk.write(0, &[Record::CreatePlane("p")]).unwrap();
    load.write(&mut disk, "p");
    let full = used(folder.path());
    disk.write(load.revision, &[Record::DropPlane("p")]).unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while used(folder.path()) > full / 2 {
        assert!(std::time::Instant::now() < deadline, "{} of {full} bytes", used(folder.path()));
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
}
