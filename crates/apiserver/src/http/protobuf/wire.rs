//! The wire format of Protobuf: numbered fields, one after the other.

use super::{Malformed, Result};

/// The value of one field, as sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    /// A text, byte string or message.
    pub(super) fn bytes(self) -> Result<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed("a field is not of the type it should be")),
        }
    }

    /// A number or truth value. Negative numbers are sent as 64 bits.
    pub(super) fn int(self) -> Result<i64> {
        match self {
            Self::Varint(value) => Ok(value as i64),
            _ => Err(Malformed("a field is not of the type it should be")),
        }
    }

    /// A number with a fraction.
    pub(super) fn double(self) -> Result<f64> {
        match self {
            Self::Fixed64(bits) => Ok(f64::from_bits(bits)),
            _ => Err(Malformed("a field is not of the type it should be")),
        }
    }
}

/// Reads the fields of a message. Ends after the first error.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8]> {
        let length = usize::try_from(length).ok().filter(|length| *length <= self.0.len());
        let (taken, rest) = self.0.split_at(length.ok_or(Malformed("the body ends too early"))?);
        self.0 = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed("the body ends too early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.fixed()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("a number is too long"))
    }

    fn field(&mut self) -> Result<(u32, Wire<'a>)> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| Malformed("a field number is too large"))?;
        let value = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.fixed()?)),
            _ => return Err(Malformed("a field has a type that does not exist")),
        };
        Ok((number, value))
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<(u32, Wire<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

/// Numbers that are sent as one field.
pub(super) fn packed(bytes: &[u8]) -> Result<impl Iterator<Item = i64>> {
    let mut reader = Reader(bytes);
    let mut values = Vec::new();
    while !reader.0.is_empty() {
        values.push(reader.varint()? as i64);
    }
    Ok(values.into_iter())
}
