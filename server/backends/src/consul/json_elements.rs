//! Splits a JSON array into its elements as the bytes arrive. Does not parse them.

use super::error::ConsulError;

/// Longest element, in bytes: Consul limits a value to 512 KiB, which is base64 here.
const ELEMENT_BYTES_MAX: usize = 2 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct JsonElements {
    element: Vec<u8>,
    /// Brackets open inside the array.
    depth: usize,
    place: ElementState,
    in_text: bool,
    is_escaped: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum ElementState {
    #[default]
    Before,
    Inside,
    After,
}

impl JsonElements {
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        take: &mut impl FnMut(&[u8]) -> Result<(), ConsulError>,
    ) -> Result<(), ConsulError> {
        for byte in bytes {
            match (&self.place, byte) {
                (ElementState::Before, b'[') => self.place = ElementState::Inside,
                (ElementState::Before | ElementState::After, byte) if byte.is_ascii_whitespace() => {}
                (ElementState::Before | ElementState::After, _) => {
                    return Err(ConsulError::protocol(
                        "the answer is not a list, so this is not Consul",
                    ));
                }
                (ElementState::Inside, byte) => self.inside(*byte, take)?,
            }
        }
        Ok(())
    }

    fn inside(
        &mut self,
        byte: u8,
        take: &mut impl FnMut(&[u8]) -> Result<(), ConsulError>,
    ) -> Result<(), ConsulError> {
        if self.in_text {
            self.in_text = byte != b'"' || self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
        } else {
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => self.depth += 1,
                b']' if self.depth == 0 => {
                    self.place = ElementState::After;
                    return self.finish(take);
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                b',' if self.depth == 0 => return self.finish(take),
                _ => {}
            }
        }
        if self.element.len() >= ELEMENT_BYTES_MAX {
            return Err(ConsulError::protocol(format!(
                "an element of the answer is larger than {ELEMENT_BYTES_MAX} bytes"
            )));
        }
        self.element.push(byte);
        Ok(())
    }

    fn finish(&mut self, take: &mut impl FnMut(&[u8]) -> Result<(), ConsulError>) -> Result<(), ConsulError> {
        let element = self.element.trim_ascii();
        let taken = if element.is_empty() { Ok(()) } else { take(element) };
        self.element.clear();
        taken
    }

    pub(super) fn is_complete(&self) -> bool {
        self.place == ElementState::After
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn elements(text: &[u8], chunk: usize) -> Option<Vec<String>> {
        let (mut split, mut found) = (JsonElements::default(), Vec::new());
        for bytes in text.chunks(chunk.max(1)) {
            let mut take = |element: &[u8]| {
                found.push(String::from_utf8_lossy(element).into_owned());
                Ok(())
            };
            split.push(bytes, &mut take).ok()?;
        }
        split.is_complete().then_some(found)
    }

    #[test]
    fn a_text_that_is_no_list_is_refused() {
        // A page, an object, a list that ends early, text after the list.
        for wrong in ["<html>", "{}", "[{\"a\":1}", "[] x"] {
            assert_eq!(elements(wrong.as_bytes(), 3), None, "{wrong}");
        }
        assert_eq!(elements(b" [ ] ", 1), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn elements_are_split_wherever_the_chunks_end(values in proptest::collection::vec("[\\[\\]{}\",\\\\a-z ]{0,8}", 0..6), chunk in 1..9usize) {
            let list: Vec<serde_json::Value> = values.iter().map(|value| serde_json::json!({ "k": value, "n": [1] })).collect();
            let found = elements(serde_json::to_string_pretty(&list).unwrap().as_bytes(), chunk).unwrap();
            let found: Vec<serde_json::Value> = found.iter().map(|one| serde_json::from_str(one).unwrap()).collect();
            prop_assert_eq!(found, list);
        }
    }
}
