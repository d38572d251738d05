//! A small strict reader of CBOR (RFC 8949), as authenticators write it: the canonical form of
//! CTAP2. Lengths are definite and numbers as short as they can be. There are no tags and no
//! fractions, keys are numbers or texts, each once, and nothing nests deeply. Whatever is claimed
//! to follow must be there before anything is made of it, so a few bytes never become many.

/// Maps and lists inside each other, as CTAP2 has it.
const DEEPEST: usize = 4;
/// Values in all.
const MOST: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CborValue<'a> {
    Int(i64),
    Bytes(&'a [u8]),
    Text(&'a str),
    List(Vec<CborValue<'a>>),
    Map(Vec<(CborValue<'a>, CborValue<'a>)>),
    Flag(bool),
    Null,
}

impl<'a> CborValue<'a> {
    /// The value under a key of a map.
    pub fn get(&self, key: &CborValue<'_>) -> Option<&CborValue<'a>> {
        let CborValue::Map(all) = self else { return None };
        all.iter().find(|(own, _)| own == key).map(|(_, value)| value)
    }

    pub fn bytes(&self) -> Option<&'a [u8]> {
        if let CborValue::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// One value, and the bytes behind it.
pub fn first(bytes: &[u8]) -> Result<(CborValue<'_>, &[u8]), &'static str> {
    let mut reader = CborReader { rest: bytes, left: MOST };
    let value = reader.value(0)?;
    Ok((value, reader.rest))
}

/// One value and nothing behind it.
pub fn whole(bytes: &[u8]) -> Result<CborValue<'_>, &'static str> {
    match first(bytes)? {
        (value, []) => Ok(value),
        _ => Err("bytes follow its end"),
    }
}

struct CborReader<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> CborReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or("it breaks off")?;
        self.rest = rest;
        Ok(taken)
    }

    /// The kind of what follows, and its number, which is as short as it can be.
    fn head(&mut self) -> Result<(u8, u64), &'static str> {
        let [first] = *self.take(1)? else { return Err("it breaks off") };
        let (kind, short) = (first >> 5, first & 31);
        if kind == 7 {
            return Ok((kind, u64::from(short)));
        }
        let length = match short {
            0..24 => return Ok((kind, u64::from(short))),
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            _ => return Err("a length is not said"),
        };
        let number = self.take(length)?.iter().fold(0u64, |number, byte| (number << 8) | u64::from(*byte));
        let least = [24, 1 << 8, 1 << 16, 1 << 32][usize::from(short - 24)];
        if number < least { Err("a number is longer than it must be") } else { Ok((kind, number)) }
    }

    fn value(&mut self, depth: usize) -> Result<CborValue<'a>, &'static str> {
        self.left = self.left.checked_sub(1).ok_or("there are too many values")?;
        let (kind, number) = self.head()?;
        let count = || usize::try_from(number).map_err(|_| "a length is too large");
        match kind {
            0 => i64::try_from(number).map(CborValue::Int).map_err(|_| "a number is too large"),
            1 => i64::try_from(number).map(|number| CborValue::Int(-1 - number)).map_err(|_| "a number is too large"),
            2 => self.take(count()?).map(CborValue::Bytes),
            3 => {
                let text = std::str::from_utf8(self.take(count()?)?);
                text.map(CborValue::Text).map_err(|_| "a text is not UTF-8")
            }
            4 => {
                let mut all = Vec::new();
                for _ in 0..self.inside(count()?, 1, depth)? {
                    all.push(self.value(depth + 1)?);
                }
                Ok(CborValue::List(all))
            }
            5 => {
                let mut all: Vec<(CborValue<'a>, CborValue<'a>)> = Vec::new();
                for _ in 0..self.inside(count()?, 2, depth)? {
                    let key = self.value(depth + 1)?;
                    if !matches!(key, CborValue::Int(_) | CborValue::Text(_)) {
                        return Err("a key is neither a number nor a text");
                    }
                    if all.iter().any(|(own, _)| *own == key) {
                        return Err("a key is there twice");
                    }
                    all.push((key, self.value(depth + 1)?));
                }
                Ok(CborValue::Map(all))
            }
            6 => Err("it has a tag"),
            _ => match number {
                20 => Ok(CborValue::Flag(false)),
                21 => Ok(CborValue::Flag(true)),
                22 => Ok(CborValue::Null),
                _ => Err("it has a value that is none of ours"),
            },
        }
    }

    /// How many follow, if so many can: each is a byte at least.
    fn inside(&self, count: usize, bytes_each: usize, depth: usize) -> Result<usize, &'static str> {
        if depth >= DEEPEST {
            return Err("it is too deep");
        }
        if count > self.left || count.saturating_mul(bytes_each) > self.rest.len() {
            return Err("it breaks off, or has too many values");
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_authenticators_write_is_read() {
        let bytes = [
            0xa4, 0x01, 0x02, 0x63, b'f', b'm', b't', 0x64, b'n', b'o', b'n', b'e', 0x20, 0x82, 0x41, 0xff, 0xf5, 0x19,
            0x01, 0x00, 0xf6, 0xaa,
        ];
        let (value, rest) = first(&bytes).expect("CBOR");
        assert_eq!(rest, [0xaa]);
        assert_eq!(value.get(&CborValue::Text("fmt")), Some(&CborValue::Text("none")));
        assert_eq!(value.get(&CborValue::Int(1)), Some(&CborValue::Int(2)));
        let list = CborValue::List(vec![CborValue::Bytes(&[0xff]), CborValue::Flag(true)]);
        assert_eq!(value.get(&CborValue::Int(-1)), Some(&list));
        assert_eq!(value.get(&CborValue::Int(256)), Some(&CborValue::Null));
        assert_eq!(whole(&[0x39, 0x01, 0x00]), Ok(CborValue::Int(-257)));
        assert_eq!(whole(&bytes), Err("bytes follow its end"));
    }

    #[test]
    fn whatever_else_is_refused_without_being_held() {
        let deep = [[0x81; 5].as_slice(), &[0x00]].concat();
        let many = [[0x98, 201].as_slice(), &[0x00; 201]].concat();
        let cases: &[(&str, &[u8])] = &[
            ("nothing", &[]),
            ("a length without an end", &[0x5f, 0x41, 0x00, 0xff]),
            ("a list without an end", &[0x9f, 0x00, 0xff]),
            ("bytes that are not there", &[0x42, 0x00]),
            ("4 GiB of bytes", &[0x5a, 0xff, 0xff, 0xff, 0xff]),
            ("more bytes than there are numbers", &[0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            ("a list of 2^64", &[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            ("a map of 2^31", &[0xba, 0x80, 0x00, 0x00, 0x00]),
            ("a number that is too long", &[0x18, 0x17]),
            ("one more of them", &[0x19, 0x00, 0xff]),
            ("a number above all", &[0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            ("a tag", &[0xc0, 0x00]),
            ("a fraction", &[0xf9, 0x00, 0x00]),
            ("undefined", &[0xf7]),
            ("a reserved length", &[0x1c]),
            ("a key twice", &[0xa2, 0x01, 0x00, 0x01, 0x00]),
            ("a list as a key", &[0xa1, 0x80, 0x00]),
            ("no text", &[0x61, 0xff]),
            ("half a head", &[0x19, 0x01]),
            ("too deep", &deep),
            ("too many", &many),
        ];
        for (what, bytes) in cases {
            assert!(whole(bytes).is_err(), "{what}");
        }
        // Every beginning of something good is refused too.
        let good = [0xa2, 0x01, 0x43, 1, 2, 3, 0x61, b'x', 0x82, 0x18, 0x18, 0x38, 0x20];
        assert!(whole(&good).is_ok());
        for end in 0..good.len() {
            assert!(whole(&good[..end]).is_err(), "{end}");
        }
    }
}
