//! Attributes that nobody reads: that they are what protobuf takes, and how many values they have.

use crate::wire::{Content, Fields, Unusual, Usual};

/// Values may nest this deep; protobuf's parser refuses those that nest some 30 deep.
const DEEPEST: u32 = 12;

/// How many values may still come in a span.
pub struct Room(pub usize);

impl Room {
    #[inline(always)]
    pub fn take(&mut self, count: usize) -> Usual<()> {
        self.0 = self.0.checked_sub(count).ok_or(Unusual)?;
        Ok(())
    }
}

/// One more level of values.
pub fn deeper(depth: u32) -> Usual<u32> {
    if depth >= DEEPEST {
        return Err(Unusual);
    }
    Ok(depth + 1)
}

/// Splits a KeyValue. What it lacks is None; what it has twice, or besides, is unusual.
#[inline(always)]
pub fn pair(message: &[u8]) -> Usual<(&[u8], Option<&[u8]>)> {
    let mut key = None;
    let mut value = None;
    let mut fields = Fields::of(message);
    while let Some((number, content)) = fields.next()? {
        let place = match number {
            1 => &mut key,
            2 => &mut value,
            _ => return Err(Unusual),
        };
        if place.replace(content.bytes()?).is_some() {
            return Err(Unusual);
        }
    }
    match key {
        Some(key) if !key.is_empty() => Ok((key, value)),
        _ => Err(Unusual),
    }
}

/// Returns the one member of an AnyValue, None where it has none.
#[inline(always)]
pub fn member(message: &[u8]) -> Usual<Option<(u32, Content<'_>)>> {
    let mut fields = Fields::of(message);
    let first = fields.next()?;
    if first.is_some() && fields.next()?.is_some() {
        return Err(Unusual);
    }
    Ok(first)
}

/// Checks an AnyValue.
pub fn value(message: &[u8], depth: u32, room: &mut Room) -> Usual<()> {
    match member(message)? {
        None => Ok(()),
        Some((1, content)) => content.text().map(|_| ()),
        Some((2 | 3, content)) => content.varint().map(|_| ()),
        Some((4, content)) => content.fixed64().map(|_| ()),
        Some((5, content)) => each(content.bytes()?, room, |item, room| {
            value(item, deeper(depth)?, room)
        }),
        Some((6, content)) => each(content.bytes()?, room, |item, room| {
            key_value(item, deeper(depth)?, room)
        }),
        Some((7, content)) => content.bytes().map(|_| ()),
        _ => Err(Unusual),
    }
}

/// Checks a KeyValue.
pub fn key_value(message: &[u8], depth: u32, room: &mut Room) -> Usual<()> {
    let (key, held) = pair(message)?;
    crate::wire::text(key)?;
    held.map_or(Ok(()), |held| value(held, depth, room))
}

/// Does something with each item of an ArrayValue or a KeyValueList.
#[inline(always)]
pub fn each<'a>(
    message: &'a [u8],
    room: &mut Room,
    mut with: impl FnMut(&'a [u8], &mut Room) -> Usual<()>,
) -> Usual<()> {
    let mut fields = Fields::of(message);
    while let Some((number, content)) = fields.next()? {
        if number != 1 {
            return Err(Unusual);
        }
        room.take(1)?;
        with(content.bytes()?, room)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(inner: &[u8]) -> Vec<u8> {
        let item = [&[0x0a, inner.len() as u8], inner].concat();
        [&[0x2a, item.len() as u8], item.as_slice()].concat()
    }

    #[test]
    fn values_nest_to_a_level_and_no_deeper() {
        let mut nested = b"\x10\x01".to_vec();
        for depth in 0..DEEPEST + 2 {
            assert_eq!(
                depth <= DEEPEST,
                value(&nested, 0, &mut Room(100)).is_ok(),
                "{depth}"
            );
            nested = list(&nested);
        }
    }

    #[test]
    fn values_are_counted_at_all_levels() {
        let nested = list(&list(b"\x10\x01"));
        assert!(value(&nested, 0, &mut Room(2)).is_ok());
        assert!(value(&nested, 0, &mut Room(1)).is_err());
    }

    #[test]
    fn a_pair_has_one_key_and_at_most_one_value() {
        assert_eq!(b"a".as_slice(), pair(b"\x0a\x01a").unwrap().0);
        assert!(pair(b"\x0a\x01a\x12\x00").unwrap().1.is_some());
        for unusual in [
            b"".as_slice(),
            b"\x0a\x00",
            b"\x0a\x01a\x0a\x01b",
            b"\x12\x00",
            b"\x0a\x01a\x18\x01",
        ] {
            assert!(pair(unusual).is_err(), "{unusual:?}");
        }
    }

    #[test]
    fn texts_that_nobody_reads_are_utf_8_too() {
        assert!(value(b"\x0a\x02\xc3\xa9", 0, &mut Room(1)).is_ok());
        assert!(value(b"\x0a\x01\xff", 0, &mut Room(1)).is_err());
        assert!(key_value(b"\x0a\x01\xff", 0, &mut Room(1)).is_err());
    }
}
