//! The protobuf wire format: where each field of a message begins and ends. Everything is bounded by the bytes given.

/// What the other decoder has to look at: something here is not as senders usually write it.
#[derive(Debug)]
pub struct Unusual;

pub type Usual<T> = Result<T, Unusual>;

/// The content of one field.
pub enum Content<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// Reads the fields of a message one after the other.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Self {
        Fields { rest: message }
    }

    /// Returns the number and the content of the next field, or None at the end. Groups are unusual.
    #[inline(always)]
    pub fn next(&mut self) -> Usual<Option<(u32, Content<'a>)>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.prefix()?;
        let number = tag >> 3;
        if number == 0 {
            return Err(Unusual);
        }
        let content = match tag & 7 {
            0 => Content::Varint(self.varint()?),
            1 => Content::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.prefix()?;
                Content::Bytes(self.take(length as usize)?)
            }
            5 => Content::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Unusual),
        };
        Ok(Some((number, content)))
    }

    /// Reads a tag or a length: at most 32 bits, in no more bytes than these take.
    #[inline(always)]
    fn prefix(&mut self) -> Usual<u32> {
        let before = self.rest.len();
        let value = self.varint()?;
        if before - self.rest.len() > PREFIX_BYTES {
            return Err(Unusual);
        }
        u32::try_from(value).map_err(|_| Unusual)
    }

    #[inline(always)]
    fn varint(&mut self) -> Usual<u64> {
        let (&first, rest) = self.rest.split_first().ok_or(Unusual)?;
        if first < MORE {
            self.rest = rest;
            return Ok(u64::from(first));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Usual<u64> {
        let mut value = 0u64;
        for (index, &byte) in self.rest.iter().enumerate().take(VARINT_BYTES) {
            if index == VARINT_BYTES - 1 && byte > 1 {
                return Err(Unusual); // more than 64 bits
            }
            value |= u64::from(byte & !MORE) << (7 * index);
            if byte < MORE {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(Unusual)
    }

    #[inline(always)]
    fn take(&mut self, length: usize) -> Usual<&'a [u8]> {
        if length > self.rest.len() {
            return Err(Unusual);
        }
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(taken)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Usual<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| Unusual)
    }
}

impl<'a> Content<'a> {
    #[inline(always)]
    pub fn bytes(self) -> Usual<&'a [u8]> {
        match self {
            Content::Bytes(bytes) => Ok(bytes),
            _ => Err(Unusual),
        }
    }

    #[inline(always)]
    pub fn text(self) -> Usual<&'a str> {
        text(self.bytes()?)
    }

    #[inline(always)]
    pub fn varint(self) -> Usual<u64> {
        match self {
            Content::Varint(value) => Ok(value),
            _ => Err(Unusual),
        }
    }

    /// A number of 31 bits: what fits into an int32 as into an uint32, and is written alike as both.
    #[inline(always)]
    pub fn small(self) -> Usual<u32> {
        match self.varint()? {
            value if value <= i32::MAX as u64 => Ok(value as u32),
            _ => Err(Unusual),
        }
    }

    #[inline(always)]
    pub fn fixed64(self) -> Usual<u64> {
        match self {
            Content::Fixed64(value) => Ok(value),
            _ => Err(Unusual),
        }
    }

    #[inline(always)]
    pub fn fixed32(self) -> Usual<u32> {
        match self {
            Content::Fixed32(value) => Ok(value),
            _ => Err(Unusual),
        }
    }
}

/// Returns bytes as the text that they are.
#[inline(always)]
pub fn text(bytes: &[u8]) -> Usual<&str> {
    if bytes.len() < LONG {
        std::str::from_utf8(bytes).map_err(|_| Unusual)
    } else {
        simdutf8::basic::from_utf8(bytes).map_err(|_| Unusual)
    }
}

const MORE: u8 = 0x80; // set on each byte of a varint but its last
const VARINT_BYTES: usize = 10;
const PREFIX_BYTES: usize = 5;
const LONG: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(message: &[u8]) -> Usual<Vec<u32>> {
        let mut fields = Fields::of(message);
        let mut found = vec![];
        while let Some((number, _)) = fields.next()? {
            found.push(number);
        }
        Ok(found)
    }

    #[test]
    fn fields_of_all_types() {
        let message = b"\x08\x96\x01\x11\x01\0\0\0\0\0\0\0\x1a\x02hi\x25\x01\0\0\0\xa2\x06\0";
        assert_eq!(vec![1, 2, 3, 4, 100], numbers(message).unwrap());
        let Ok(Some((1, Content::Varint(150)))) = Fields::of(message).next() else {
            panic!("150 is written in two bytes")
        };
    }

    #[test]
    fn what_is_cut_off_is_unusual_wherever_it_is_cut() {
        let message = b"\x08\x96\x01\x11\x01\0\0\0\0\0\0\0\x1a\x02hi\x25\x01\0\0\0";
        let whole = [0, 3, 12, 16, 21];
        for end in 0..=message.len() {
            assert_eq!(
                whole.contains(&end),
                numbers(&message[..end]).is_ok(),
                "{end}"
            );
        }
    }

    #[test]
    fn numbers_have_64_bits_in_ten_bytes_and_prefixes_32_in_five() {
        let largest = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        let Ok(Some((1, Content::Varint(u64::MAX)))) = Fields::of(largest).next() else {
            panic!("all bits are set")
        };
        for unusual in [
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02".as_slice(),
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x88\x80\x80\x80\x80\x00\x01",
            b"\x0a\x80\x80\x80\x80\x80\x00",
            b"\x0a\xff\xff\xff\xff\x7f",
            b"\x00\x01",
            b"\x0b\x0c",
            b"\x0e",
        ] {
            assert!(numbers(unusual).is_err(), "{unusual:?}");
        }
    }
}
