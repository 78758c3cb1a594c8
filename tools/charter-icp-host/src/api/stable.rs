//! Stable memory: `stable64_*`, and the older `stable_*` for the first 4 GiB.

use wasmi::Linker;

use super::{Canister, Done, SMALL, charge_bytes, contract, enter, heap, outside, part, part_mut};
use crate::entry::Entries;
use crate::env::Env;
use crate::run::Trap;
use crate::stable::OutOfBounds;

/// The range of 32-bit addresses, in pages of 64 KiB.
const PAGES_32: u64 = 65_536;

pub(super) fn define(linker: &mut Linker<Env>) -> Result<(), wasmi::Error> {
    linker.func_wrap("ic0", "stable64_size", |mut c: Canister<'_>| -> Done<i64> {
        enter(&mut c, "stable64_size", Entries::ALL, SMALL)?;
        Ok(c.data().stable.size().cast_signed())
    })?;
    linker.func_wrap("ic0", "stable64_grow", |mut c: Canister<'_>, pages: i64| -> Done<i64> {
        enter(&mut c, "stable64_grow", Entries::ALL, SMALL)?;
        Ok(c.data_mut().stable.grow(pages.cast_unsigned()).map_or(-1, u64::cast_signed))
    })?;
    linker.func_wrap("ic0", "stable64_write", |mut c: Canister<'_>, offset: i64, from: i64, length: i64| -> Done {
        enter(&mut c, "stable64_write", Entries::ALL, SMALL)?;
        write(&mut c, offset.cast_unsigned(), from.cast_unsigned(), length.cast_unsigned())
    })?;
    linker.func_wrap("ic0", "stable64_read", |mut c: Canister<'_>, to: i64, offset: i64, length: i64| -> Done {
        enter(&mut c, "stable64_read", Entries::ALL, SMALL)?;
        read(&mut c, to.cast_unsigned(), offset.cast_unsigned(), length.cast_unsigned())
    })?;
    linker.func_wrap("ic0", "stable_size", |mut c: Canister<'_>| -> Done<i32> {
        enter(&mut c, "stable_size", Entries::ALL, SMALL)?;
        Ok(u32::try_from(small(&c)?).unwrap_or(u32::MAX).cast_signed())
    })?;
    linker.func_wrap("ic0", "stable_grow", |mut c: Canister<'_>, pages: i32| -> Done<i32> {
        enter(&mut c, "stable_grow", Entries::ALL, SMALL)?;
        let (before, more) = (small(&c)?, u64::from(pages.cast_unsigned()));
        if before.saturating_add(more) > PAGES_32 {
            return Ok(-1);
        }
        let grown = c.data_mut().stable.grow(more).and_then(|before| i32::try_from(before).ok());
        Ok(grown.unwrap_or(-1))
    })?;
    linker.func_wrap("ic0", "stable_write", |mut c: Canister<'_>, offset: i32, from: i32, length: i32| -> Done {
        enter(&mut c, "stable_write", Entries::ALL, SMALL)?;
        small(&c)?;
        write(&mut c, wide(offset), wide(from), wide(length))
    })?;
    linker.func_wrap("ic0", "stable_read", |mut c: Canister<'_>, to: i32, offset: i32, length: i32| -> Done {
        enter(&mut c, "stable_read", Entries::ALL, SMALL)?;
        small(&c)?;
        read(&mut c, wide(to), wide(offset), wide(length))
    })?;
    Ok(())
}

fn wide(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}

/// Returns the size, if the 32-bit functions may be used.
fn small(canister: &Canister<'_>) -> Done<u64> {
    let pages = canister.data().stable.size();
    if pages > PAGES_32 {
        return Err(contract("the stable memory is larger than 32 bits can address"));
    }
    Ok(pages)
}

fn beyond(_: OutOfBounds) -> wasmi::Error {
    wasmi::Error::host(Trap::Wasm("stable memory out of bounds".to_string()))
}

fn write(canister: &mut Canister<'_>, offset: u64, from: u64, length: u64) -> Done {
    charge_bytes(canister, index(from)?, index(length)?)?;
    let (heap, env) = heap(canister)?;
    let bytes = part(heap, index(from)?, index(length)?).ok_or_else(outside)?;
    env.stable.write(offset, bytes).map_err(beyond)
}

fn read(canister: &mut Canister<'_>, to: u64, offset: u64, length: u64) -> Done {
    charge_bytes(canister, index(to)?, index(length)?)?;
    let (heap, env) = heap(canister)?;
    let bytes = part_mut(heap, index(to)?, index(length)?).ok_or_else(outside)?;
    env.stable.read(offset, bytes).map_err(beyond)
}

fn index(value: u64) -> Done<usize> {
    usize::try_from(value).map_err(|_| outside())
}
