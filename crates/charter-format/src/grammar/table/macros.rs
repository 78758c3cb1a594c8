//! Macros that build fields. They are not functions because a reference in a static can point to a
//! struct literal but not to the result of a function.

macro_rules! may {
    ($key:literal, $form:expr, $doc:literal) => {
        $crate::grammar::Field { key: $key, form: &$form, required: false, doc: $doc }
    };
}

macro_rules! must {
    ($key:literal, $form:expr, $doc:literal) => {
        $crate::grammar::Field { key: $key, form: &$form, required: true, doc: $doc }
    };
}

/// A single value or a list of them.
macro_rules! one_or_many {
    ($what:literal, $($form:expr),+; $item:expr) => {
        $crate::grammar::Form::OneOf { what: $what, forms: &[$($form),+, $crate::grammar::Form::List(&$item)] }
    };
}

pub(super) use one_or_many;
pub(in crate::grammar) use {may, must};
