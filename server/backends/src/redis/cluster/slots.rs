//! Hash slots of a cluster: the slot of a key, and sets of slots. Pure.

/// Slots of every cluster.
pub(super) const SLOTS: u16 = 16_384;
const WORDS: usize = SLOTS as usize / 64;

/// Slot of a key: CRC16 (XMODEM) of the key, or of the part in its first braces.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    crc16(hashed_part(key)) % SLOTS
}

fn hashed_part(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else {
        return key;
    };
    let rest = &key[open + 1..];
    match rest.iter().position(|byte| *byte == b'}') {
        None | Some(0) => key,
        Some(close) => &rest[..close],
    }
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            }
        })
    })
}

/// A set of slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlotSet(Box<[u64; WORDS]>);

impl Default for SlotSet {
    fn default() -> Self {
        Self(Box::new([0; WORDS]))
    }
}

impl SlotSet {
    pub(super) fn insert(&mut self, slot: u16) {
        if let Some(word) = self.0.get_mut(usize::from(slot / 64)) {
            *word |= 1 << (slot % 64);
        }
    }

    pub(super) fn remove(&mut self, slot: u16) {
        if let Some(word) = self.0.get_mut(usize::from(slot / 64)) {
            *word &= !(1 << (slot % 64));
        }
    }

    pub(super) fn contains(&self, slot: u16) -> bool {
        self.0
            .get(usize::from(slot / 64))
            .is_some_and(|word| word & (1 << (slot % 64)) != 0)
    }

    pub(super) fn insert_ranges(&mut self, ranges: &[(u16, u16)]) {
        for slot in ranges.iter().flat_map(|(first, last)| *first..=*last) {
            self.insert(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        // 0x31C3 is the check value of the specification; braces select a part of the key.
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"user1000"));
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
        assert_eq!(slot_of(b"foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot_of(b"foo{bar"), crc16(b"foo{bar") % SLOTS);
    }

    #[test]
    fn a_set_has_the_slots_of_its_ranges() {
        let mut set = SlotSet::default();
        set.insert_ranges(&[(0, 0), (63, 65), (16_383, 16_383)]);
        set.remove(64);
        let has: Vec<u16> = (0..SLOTS).filter(|slot| set.contains(*slot)).collect();
        assert_eq!(has, [0, 63, 65, 16_383]);
    }
}
