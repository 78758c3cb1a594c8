//! The methods of an open file.

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_io_methods};

use super::{DEAD, File, Inner, on_disk, real_file};
use crate::disk::Ended;
use crate::plan::{Fault, Op};

/// The methods of a file.
pub(super) static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    // 2: with shared memory, without mapped files.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(map),
    xShmLock: Some(map_lock),
    xShmBarrier: Some(barrier),
    xShmUnmap: Some(unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Calls a method of the file in SQLite's own VFS.
macro_rules! real {
    ($file:expr, $method:ident $(, $argument:expr)*) => {{
        let file = real_file($file);
        // SAFETY: `open` has opened this file, so its methods are set; the arguments are those of
        // SQLite, or buffers of the length that is passed.
        unsafe { (*(*file).pMethods).$method.unwrap()(file $(, $argument)*) }
    }};
}

fn inner<'f>(file: *mut sqlite3_file) -> &'f Inner {
    on_disk();
    // SAFETY: `open` has set it, and `close` is the last call for a file.
    unsafe { &*(*file.cast::<File>()).inner }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    let code = real!(file, xClose);
    // SAFETY: `open` has made it; SQLite does not use a file after closing it.
    drop(unsafe { Box::from_raw((*file.cast::<File>()).inner) });
    // SAFETY: As above.
    unsafe { (*file).pMethods = null() };
    code
}

/// Where bytes are, if they are this many pages further on.
fn misplaced(at: sqlite3_int64, pages: i64) -> sqlite3_int64 {
    (at + pages * 4_096).max(0)
}

unsafe extern "C" fn read(file: *mut sqlite3_file, out: *mut c_void, len: c_int, at: sqlite3_int64) -> c_int {
    let Inner { disk, name, .. } = inner(file);
    let fault = disk.lock().call(Op::Read, name, usize::try_from(len).unwrap());
    // SAFETY: SQLite passes a buffer of this length.
    let bytes = || unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), usize::try_from(len).unwrap()) };
    match fault {
        Err(()) => DEAD,
        Ok(Some(Fault::Fails(code))) => code,
        Ok(Some(Fault::Misplaced(pages))) => real!(file, xRead, out, len, misplaced(at, pages)),
        Ok(Some(Fault::Torn(done, code))) => {
            let real = real!(file, xRead, out, len, at);
            bytes()[done..].fill(0);
            if real == ffi::SQLITE_OK { code } else { real }
        }
        Ok(Some(Fault::Flipped(bit))) => {
            let code = real!(file, xRead, out, len, at);
            flip(bytes(), bit);
            code
        }
        Ok(_) => real!(file, xRead, out, len, at),
    }
}

fn flip(bytes: &mut [u8], bit: usize) {
    if let Some(byte) = bytes.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

unsafe extern "C" fn write(file: *mut sqlite3_file, from: *const c_void, len: c_int, at: sqlite3_int64) -> c_int {
    let Inner { disk, name, .. } = inner(file);
    // SAFETY: SQLite passes a buffer of this length.
    let mut bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), usize::try_from(len).unwrap()) }.to_vec();
    let mut state = disk.lock();
    let (at, code) = match state.call(Op::Write, name, bytes.len()) {
        Err(()) => return DEAD,
        Ok(Some(Fault::Fails(code))) => return code,
        Ok(Some(Fault::Lost)) => return ffi::SQLITE_OK,
        Ok(Some(Fault::PowerCut)) => {
            // In the middle of it: how much of it is on the disk is decided later.
            state.wrote(name, usize::try_from(at).unwrap(), bytes);
            state.end(Ended::PowerCut);
            return DEAD;
        }
        Ok(Some(Fault::Misplaced(pages))) => (misplaced(at, pages), ffi::SQLITE_OK),
        Ok(Some(Fault::Torn(done, code))) => {
            bytes.truncate(done);
            (at, code)
        }
        Ok(Some(Fault::Flipped(bit))) => {
            flip(&mut bytes, bit);
            (at, ffi::SQLITE_OK)
        }
        Ok(_) => (at, ffi::SQLITE_OK),
    };
    let real = real!(file, xWrite, bytes.as_ptr().cast(), c_int::try_from(bytes.len()).unwrap(), at);
    if real != ffi::SQLITE_OK {
        return real;
    }
    state.wrote(name, usize::try_from(at).unwrap(), bytes);
    code
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, len: sqlite3_int64) -> c_int {
    let Inner { disk, name, .. } = inner(file);
    let mut state = disk.lock();
    match state.call(Op::Truncate, name, 0) {
        Err(()) => DEAD,
        Ok(Some(Fault::Fails(code))) => code,
        Ok(Some(Fault::Lost)) => ffi::SQLITE_OK,
        Ok(_) => {
            let code = real!(file, xTruncate, len);
            if code == ffi::SQLITE_OK {
                state.truncated(name, usize::try_from(len).unwrap());
            }
            code
        }
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _flags: c_int) -> c_int {
    let Inner { disk, name, folder } = inner(file);
    let mut state = disk.lock();
    match state.call(Op::Sync, name, 0) {
        Err(()) => return DEAD,
        Ok(Some(Fault::Fails(code))) => return code,
        Ok(Some(Fault::SyncFails)) => {
            state.not_synced(name);
            return ffi::SQLITE_IOERR_FSYNC;
        }
        Ok(Some(Fault::Lost)) => {}
        Ok(_) => state.synced(name, folder.take()),
    }
    // The disk is in memory: there is nothing to wait for.
    ffi::SQLITE_OK
}

unsafe extern "C" fn size(file: *mut sqlite3_file, out: *mut sqlite3_int64) -> c_int {
    let Inner { disk, name, .. } = inner(file);
    match disk.lock().call(Op::Size, name, 0) {
        Err(()) => DEAD,
        Ok(Some(Fault::Fails(code))) => code,
        Ok(_) => real!(file, xFileSize, out),
    }
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    let Inner { disk, name, .. } = inner(file);
    match disk.lock().call(Op::Lock, name, 0) {
        Err(()) => DEAD,
        Ok(Some(Fault::Fails(code))) => code,
        Ok(_) => real!(file, xLock, level),
    }
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    real!(file, xUnlock, level)
}

unsafe extern "C" fn check_reserved(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    real!(file, xCheckReservedLock, out)
}

unsafe extern "C" fn control(_: *mut sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    // Hints, and mapped files, which there are none of.
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    real!(file, xSectorSize)
}

unsafe extern "C" fn characteristics(file: *mut sqlite3_file) -> c_int {
    real!(file, xDeviceCharacteristics)
}

unsafe extern "C" fn map(
    file: *mut sqlite3_file,
    page: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    let Inner { disk, name, .. } = inner(file);
    let fault = disk.lock().call(Op::Map, name, usize::try_from(size).unwrap());
    let code = match fault {
        Err(()) => DEAD,
        Ok(Some(Fault::Fails(code))) => code,
        Ok(_) => return real!(file, xShmMap, page, size, extend, out),
    };
    // SAFETY: SQLite passes a place for the result.
    unsafe { *out = null_mut() };
    code
}

unsafe extern "C" fn map_lock(file: *mut sqlite3_file, from: c_int, n: c_int, flags: c_int) -> c_int {
    let Inner { disk, name, .. } = inner(file);
    if flags & ffi::SQLITE_SHM_LOCK != 0 {
        match disk.lock().call(Op::MapLock, name, 0) {
            Err(()) => return DEAD,
            Ok(Some(Fault::Fails(code))) => return code,
            Ok(_) => {}
        }
    }
    real!(file, xShmLock, from, n, flags)
}

unsafe extern "C" fn barrier(file: *mut sqlite3_file) {
    real!(file, xShmBarrier);
}

unsafe extern "C" fn unmap(file: *mut sqlite3_file, delete: c_int) -> c_int {
    let dead = inner(file).disk.lock().ended();
    real!(file, xShmUnmap, if dead { 0 } else { delete })
}
