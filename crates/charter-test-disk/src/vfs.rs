//! The VFS: callbacks of SQLite that ask a disk how the call fails, and pass it on to SQLite's own
//! VFS <https://www.sqlite.org/vfs.html>.
//!
//! SQLite calls through C function pointers and lets a VFS keep its data behind the struct that it
//! allocates; both need `unsafe`. What the code relies on is said at each place.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, Once, PoisonError};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs};

use crate::disk::Shared;
use crate::plan::{Fault, Op};

/// The disks by folder.
static DISKS: Mutex<Vec<(PathBuf, Arc<Shared>)>> = Mutex::new(Vec::new());

thread_local! {
    /// Whether the last call of this thread was to a file of a disk: then it does not sleep.
    static ON_DISK: Cell<bool> = const { Cell::new(false) };
}

/// Makes a folder a disk.
pub(crate) fn mount(folder: &Path, disk: &Arc<Shared>) {
    register();
    let mut disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
    disks.push((folder.to_owned(), disk.clone()));
}

pub(crate) fn unmount(disk: &Arc<Shared>) {
    DISKS.lock().unwrap_or_else(PoisonError::into_inner).retain(|(_, other)| !Arc::ptr_eq(other, disk));
}

/// The disk of a file, and its name there.
fn find(name: *const c_char) -> Option<(Arc<Shared>, String)> {
    let found = (!name.is_null()).then(|| {
        // SAFETY: SQLite passes a string that ends with a zero byte.
        let name = unsafe { CStr::from_ptr(name) };
        let path = PathBuf::from(name.to_str().ok()?);
        let disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, disk) = disks.iter().find(|(folder, _)| path.parent() == Some(folder))?;
        Some((disk.clone(), path.file_name()?.to_str()?.to_owned()))
    });
    let found = found.flatten();
    ON_DISK.set(found.is_some());
    found
}

/// A file as SQLite knows it. The struct of SQLite's own VFS follows it in memory.
#[repr(C)]
struct File {
    base: sqlite3_file,
    inner: *mut Inner,
}

struct Inner {
    disk: Arc<Shared>,
    name: String,
}

/// Offset of the struct of SQLite's own VFS.
const OFFSET: usize = size_of::<File>().next_multiple_of(16);

fn real() -> *mut sqlite3_vfs {
    // SAFETY: The name is a static string; the result is null or lives as long as the process.
    let real = unsafe { ffi::sqlite3_vfs_find(c"unix".as_ptr()) };
    assert!(!real.is_null(), "SQLite has no VFS `unix`");
    real
}

/// Registers the VFS as the default, once.
fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: SQLite's own VFS is a valid struct, which can be copied field by field.
        let mut vfs = unsafe { *real() };
        vfs.szOsFile += c_int::try_from(OFFSET).unwrap();
        vfs.pNext = null_mut();
        vfs.zName = c"charter-test-disk".as_ptr();
        vfs.pAppData = null_mut();
        vfs.xOpen = Some(open);
        vfs.xDelete = Some(delete);
        vfs.xAccess = Some(access);
        vfs.xFullPathname = Some(full_pathname);
        vfs.xSleep = Some(sleep);
        // SAFETY: The struct is never freed, as a registered VFS must be.
        let code = unsafe { ffi::sqlite3_vfs_register(Box::into_raw(Box::new(vfs)), 1) };
        assert_eq!(code, ffi::SQLITE_OK, "the VFS cannot be registered");
    });
}

const METHODS: sqlite3_io_methods = sqlite3_io_methods {
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

static STATIC_METHODS: sqlite3_io_methods = METHODS;

/// Calls a method of the file in SQLite's own VFS.
macro_rules! real {
    ($file:expr, $method:ident $(, $argument:expr)*) => {{
        let file = real_file($file);
        // SAFETY: `open` has opened this file, so its methods are set; the arguments are those of
        // SQLite, or buffers of the length that is passed.
        unsafe { (*(*file).pMethods).$method.unwrap()(file $(, $argument)*) }
    }};
}

fn real_file(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: SQLite allocates `szOsFile` bytes, which `register` has set to both structs.
    unsafe { file.cast::<u8>().add(OFFSET).cast() }
}

fn inner<'f>(file: *mut sqlite3_file) -> &'f Inner {
    ON_DISK.set(true);
    // SAFETY: `open` has set it, and `close` is the last call for a file.
    unsafe { &*(*file.cast::<File>()).inner }
}

/// The error of a process that has ended.
const DEAD: c_int = ffi::SQLITE_IOERR;

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let vfs = real();
    // SAFETY: `real` returns a valid struct.
    let open = unsafe { (*vfs).xOpen.unwrap() };
    let Some((disk, name_there)) = find(name) else {
        // SAFETY: The arguments are those of SQLite; the buffer is large enough.
        return unsafe { open(vfs, name, file, flags, out) };
    };
    // SAFETY: SQLite passes a buffer for this struct. Without methods, it does not close the file.
    unsafe { (*file).pMethods = null() };
    let mut state = disk.lock();
    match state.call(Op::Open, &name_there, 0) {
        Err(()) => return DEAD,
        Ok(Some(Fault::Fails(code))) => return code,
        Ok(_) => {}
    }
    let there = real_file(file);
    // SAFETY: `there` has room for the struct of SQLite's own VFS.
    let code = unsafe { open(vfs, name, there, flags, out) };
    if code == ffi::SQLITE_OK {
        state.opened(&name_there);
        drop(state);
        let inner = Box::into_raw(Box::new(Inner { disk, name: name_there }));
        // SAFETY: The buffer begins with this struct.
        unsafe { *file.cast::<File>() = File { base: sqlite3_file { pMethods: &raw const STATIC_METHODS }, inner } };
    }
    code
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    let code = real!(file, xClose);
    // SAFETY: `open` has made it; SQLite does not use a file after closing it.
    drop(unsafe { Box::from_raw((*file.cast::<File>()).inner) });
    // SAFETY: As above.
    unsafe { (*file).pMethods = null() };
    code
}

unsafe extern "C" fn delete(_: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    let vfs = real();
    // SAFETY: The arguments are those of SQLite.
    let delete = || unsafe { (*vfs).xDelete.unwrap()(vfs, name, 0) };
    let Some((disk, name)) = find(name) else {
        return delete();
    };
    let mut state = disk.lock();
    match state.call(Op::Delete, &name, 0) {
        Err(()) => DEAD,
        Ok(Some(Fault::Fails(code))) => code,
        Ok(Some(Fault::Lost)) => ffi::SQLITE_OK,
        Ok(_) => {
            let code = delete();
            if code == ffi::SQLITE_OK {
                state.deleted(&name, sync != 0);
            }
            code
        }
    }
}

unsafe extern "C" fn access(_: *mut sqlite3_vfs, name: *const c_char, flags: c_int, out: *mut c_int) -> c_int {
    let vfs = real();
    if let Some((disk, name)) = find(name) {
        match disk.lock().call(Op::Access, &name, 0) {
            Err(()) => return DEAD,
            Ok(Some(Fault::Fails(code))) => return code,
            Ok(Some(Fault::Lost)) => {
                // SAFETY: SQLite passes a place for the result.
                unsafe { *out = 0 };
                return ffi::SQLITE_OK;
            }
            Ok(_) => {}
        }
    }
    // SAFETY: The arguments are those of SQLite.
    unsafe { (*vfs).xAccess.unwrap()(vfs, name, flags, out) }
}

unsafe extern "C" fn full_pathname(_: *mut sqlite3_vfs, name: *const c_char, n: c_int, out: *mut c_char) -> c_int {
    let vfs = real();
    // SAFETY: The arguments are those of SQLite.
    unsafe { (*vfs).xFullPathname.unwrap()(vfs, name, n, out) }
}

unsafe extern "C" fn sleep(_: *mut sqlite3_vfs, micros: c_int) -> c_int {
    if ON_DISK.get() {
        return micros;
    }
    let vfs = real();
    // SAFETY: `real` returns a valid struct.
    unsafe { (*vfs).xSleep.unwrap()(vfs, micros) }
}

/// Where bytes are, if they are this many pages further on.
fn misplaced(at: sqlite3_int64, pages: i64) -> sqlite3_int64 {
    (at + pages * 4_096).max(0)
}

unsafe extern "C" fn read(file: *mut sqlite3_file, out: *mut c_void, len: c_int, at: sqlite3_int64) -> c_int {
    let Inner { disk, name } = inner(file);
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
    let Inner { disk, name } = inner(file);
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
            state.end(crate::disk::Ended::PowerCut);
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
    let Inner { disk, name } = inner(file);
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
    let Inner { disk, name } = inner(file);
    let mut state = disk.lock();
    match state.call(Op::Sync, name, 0) {
        Err(()) => return DEAD,
        Ok(Some(Fault::Fails(code))) => return code,
        Ok(Some(Fault::SyncFails)) => {
            state.not_synced(name);
            return ffi::SQLITE_IOERR_FSYNC;
        }
        Ok(Some(Fault::Lost)) => {}
        Ok(_) => state.synced(name),
    }
    // The disk is in memory: there is nothing to wait for.
    ffi::SQLITE_OK
}

unsafe extern "C" fn size(file: *mut sqlite3_file, out: *mut sqlite3_int64) -> c_int {
    let Inner { disk, name } = inner(file);
    match disk.lock().call(Op::Size, name, 0) {
        Err(()) => DEAD,
        Ok(Some(Fault::Fails(code))) => code,
        Ok(_) => real!(file, xFileSize, out),
    }
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    let Inner { disk, name } = inner(file);
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
    let Inner { disk, name } = inner(file);
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
    let Inner { disk, name } = inner(file);
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
