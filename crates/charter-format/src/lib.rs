//! charter-format
