//! Memories and SQLite of the canister. In a canister, `ic-rusqlite` provides them, because it owns
//! the memory manager (a second one would overwrite it). Elsewhere they belong to this process, so
//! that everything compiles and can be tested without a canister.

use ic_stable_structures::DefaultMemoryImpl;
use ic_stable_structures::memory_manager::{MemoryId, VirtualMemory};

/// A virtual stable memory.
pub(crate) type Memory = VirtualMemory<DefaultMemoryImpl>;

#[cfg(target_family = "wasm")]
mod here {
    use super::{Memory, MemoryId, rusqlite};

    // SQLite uses a page cache of 16 MiB in the heap, and no journal file, because a failed message
    // is rolled back as a whole.
    const PRAGMAS: [(&str, &str); 3] = [("journal_mode", "MEMORY"), ("cache_size", "4096"), ("trusted_schema", "OFF")];

    /// Configures SQLite. Must be called before the first use.
    pub(crate) fn set_up() {
        let mut config = ic_rusqlite::get_connection_config();
        for (name, value) in PRAGMAS {
            config.pragma_settings.insert(name.into(), value.into());
        }
        ic_rusqlite::set_connection_config(config);
    }

    /// Returns a memory of this crate; their ids are below 100.
    pub(crate) fn memory(id: u8) -> Memory {
        ic_rusqlite::MEMORY_MANAGER.with_borrow(|m| m.get(MemoryId::new(id)))
    }

    /// Accesses the database with the projection.
    pub(crate) fn with_sql<R>(f: impl FnOnce(&mut rusqlite::Connection) -> R) -> R {
        ic_rusqlite::with_connection(|mut connection| f(&mut connection))
    }
}

#[cfg(not(target_family = "wasm"))]
mod here {
    use std::cell::RefCell;

    use ic_stable_structures::DefaultMemoryImpl;
    use ic_stable_structures::memory_manager::MemoryManager;

    use super::{Memory, MemoryId, rusqlite};

    thread_local! {
        static MEMORIES: MemoryManager<DefaultMemoryImpl> = MemoryManager::init(DefaultMemoryImpl::default());
        static SQL: RefCell<Option<rusqlite::Connection>> =
            RefCell::new(rusqlite::Connection::open_in_memory().ok());
    }

    /// Does nothing: only a canister needs the configuration.
    pub(crate) fn set_up() {}

    /// Returns a memory of this thread.
    pub(crate) fn memory(id: u8) -> Memory {
        MEMORIES.with(|m| m.get(MemoryId::new(id)))
    }

    /// Accesses the database of this thread.
    #[allow(clippy::expect_used)] // outside of a canister only; opening an in-memory database fails only without memory
    pub(crate) fn with_sql<R>(f: impl FnOnce(&mut rusqlite::Connection) -> R) -> R {
        SQL.with_borrow_mut(|sql| f(sql.as_mut().expect("SQLite in memory")))
    }
}

#[cfg(not(target_family = "wasm"))]
pub(crate) use ::rusqlite;
pub(crate) use here::{memory, set_up, with_sql};
#[cfg(target_family = "wasm")]
pub(crate) use ic_rusqlite as rusqlite;
