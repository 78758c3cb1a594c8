//! The VFS: callbacks of SQLite that ask a disk how the call fails, and pass it on to SQLite's own
//! VFS <https://www.sqlite.org/vfs.html>.
//!
//! SQLite calls through C function pointers and lets a VFS keep its data behind the struct that it
//! allocates; both need `unsafe`. What the code relies on is said at each place.
#![allow(unsafe_code)]

mod file;

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, Once, PoisonError};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_vfs};

use crate::disk::Shared;
use crate::plan::{Fault, Op};

/// The disks by folder.
static DISKS: Mutex<Vec<(PathBuf, Arc<Shared>)>> = Mutex::new(Vec::new());

thread_local! {
    /// Whether the last call of this thread was to a file of a disk: then it does not sleep.
    static ON_DISK: Cell<bool> = const { Cell::new(false) };
}

/// What a thread does before one of its calls.
type Pause = (u64, Box<dyn FnOnce()>);

thread_local! {
    static PAUSE: Cell<Option<Pause>> = const { Cell::new(None) };
}

/// Calls `then` before the n-th call of this thread to a disk, from 0: it can wait there for
/// another thread.
pub fn pause_at(n: u64, then: impl FnOnce() + 'static) {
    PAUSE.set(Some((n, Box::new(then))));
}

/// Notes that this thread calls a file of a disk.
fn on_disk() {
    ON_DISK.set(true);
    match PAUSE.take() {
        Some((0, then)) => then(),
        Some((n, then)) => PAUSE.set(Some((n - 1, then))),
        None => {}
    }
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

/// Notes that a file was written again, as it is, and synced with its name, without SQLite.
pub fn written_again(file: &Path) {
    let disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
    let disk = disks.iter().find(|(folder, _)| file.parent() == Some(folder)).map(|(_, disk)| disk.clone());
    drop(disks);
    if let (Some(disk), Some(name)) = (disk, file.file_name().and_then(|name| name.to_str())) {
        disk.lock().written_again(name);
    }
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
    match found {
        Some(_) => on_disk(),
        None => ON_DISK.set(false),
    }
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
    /// Whether the next sync also syncs the folder, as that of a journal or log that was opened to
    /// be created.
    folder: Cell<bool>,
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

/// The struct of SQLite's own VFS for a file.
fn real_file(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: SQLite allocates `szOsFile` bytes, which `register` has set to both structs.
    unsafe { file.cast::<u8>().add(OFFSET).cast() }
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
        let journals = ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL | ffi::SQLITE_OPEN_WAL;
        let folder = Cell::new(flags & ffi::SQLITE_OPEN_CREATE != 0 && flags & journals != 0);
        let inner = Box::into_raw(Box::new(Inner { disk, name: name_there, folder }));
        // SAFETY: The buffer begins with this struct.
        unsafe { *file.cast::<File>() = File { base: sqlite3_file { pMethods: &raw const file::METHODS }, inner } };
    }
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
