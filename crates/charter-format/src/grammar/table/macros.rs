//! How fields are written down. Macros, not functions: only struct literals may stand behind a reference in a static.

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

/// A value that may stand alone or in a list.
macro_rules! one_or_many {
    ($what:literal, $($form:expr),+; $item:expr) => {
        $crate::grammar::Form::OneOf { what: $what, forms: &[$($form),+, $crate::grammar::Form::List(&$item)] }
    };
}

pub(super) use {may, must, one_or_many};
