//! The shape of every section of a file, written down once: the check of a file, the JSON Schema and the reference of keys
//! all walk these tables, so they cannot disagree.

mod check;
mod nearest;
mod reference;
pub(crate) mod scalar;
mod schema;

pub(crate) use check::check_document;
pub use nearest::did_you_mean;
pub(crate) use nearest::listed;
pub use reference::reference_config;
pub(crate) use scalar::{Interval, Scalar};
pub use schema::{schema_config, schema_scenario};

/// A table of the file: which keys it takes.
#[derive(Debug)]
pub(crate) struct Form {
    /// What it is called in the schema, unique.
    pub name: &'static str,
    /// What it is for, a sentence.
    pub doc: &'static str,
    /// How many of the keys may be given.
    pub rule: Rule,
    /// Its keys.
    pub keys: &'static [Key],
    /// What it looks like, where one sentence helps whoever got it wrong.
    pub hint: Option<&'static str>,
}

/// How many of a form's keys may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Those that are required, and any others.
    Any,
    /// One.
    ExactlyOne,
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub shape: Shape,
    pub doc: &'static str,
    /// What holds when it is left out, as TOML.
    pub default: Option<&'static str>,
    pub need: Need,
    pub role: Role,
}

/// Whether a key must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Optional,
    Required,
}

/// Whether a key is a number or choice of the scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    World,
    Policy,
}

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// A single value.
    Scalar(Scalar),
    /// A list, each element of a shape, at least one.
    List(&'static Shape),
    /// A list, each element of a shape, perhaps none.
    Any(&'static Shape),
    /// Two values of a shape.
    Pair(&'static Shape),
    /// Two values, each of its own shape.
    Couple(&'static Shape, &'static Shape),
    /// A table.
    Table(&'static Form),
    /// An array of tables.
    Tables(&'static Form),
    /// A table of tables, each under a name of the user's choice.
    Named(&'static Form),
    /// A table of texts, each under a name of the user's choice.
    Texts,
    /// A table whose other keys depend on the value of one of them.
    Tagged(&'static Tagged),
    /// The first of these that takes this type of value.
    Either(&'static [Shape]),
}

/// A table in several variants.
#[derive(Debug)]
pub(crate) struct Tagged {
    /// The key that tells which.
    pub tag: &'static str,
    /// Its values and what goes with each.
    pub variants: &'static [(&'static str, &'static Form)],
}

impl Form {
    pub const fn new(name: &'static str, doc: &'static str, keys: &'static [Key]) -> Form {
        Form { name, doc, rule: Rule::Any, keys, hint: None }
    }

    /// A table that takes exactly one of its keys; `hint` shows one.
    pub const fn one_of(name: &'static str, doc: &'static str, keys: &'static [Key], hint: &'static str) -> Form {
        Form { name, doc, rule: Rule::ExactlyOne, keys, hint: Some(hint) }
    }

    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Key {
    pub const fn new(name: &'static str, shape: Shape, doc: &'static str) -> Key {
        Key { name, shape, doc, default: None, need: Need::Optional, role: Role::World }
    }

    pub const fn scalar(name: &'static str, scalar: Scalar, doc: &'static str) -> Key {
        Key::new(name, Shape::Scalar(scalar), doc)
    }

    pub const fn required(mut self) -> Key {
        self.need = Need::Required;
        self
    }

    pub const fn or(mut self, default: &'static str) -> Key {
        self.default = Some(default);
        self
    }

    pub const fn policy(mut self) -> Key {
        self.role = Role::Policy;
        self
    }
}

impl Tagged {
    pub fn variant(&self, name: &str) -> Option<&'static Form> {
        self.variants.iter().find(|(tag, _)| *tag == name).map(|(_, form)| *form)
    }

    /// Which variants take `key`, in words.
    pub fn takers(&self, key: &str) -> Option<String> {
        let takers = self.variants.iter().filter(|(_, form)| form.key(key).is_some());
        let takers: Vec<&str> = takers.map(|(tag, _)| *tag).collect();
        (!takers.is_empty()).then(|| format!("`{key}` goes with {} = {}", self.tag, takers.join(" or ")))
    }

    pub fn tags(&self) -> Vec<&'static str> {
        self.variants.iter().map(|(tag, _)| *tag).collect()
    }
}

impl Shape {
    /// The form of a table, also where a table is one of several possibilities.
    pub fn table_form(self) -> Option<&'static Form> {
        match self {
            Shape::Table(form) => Some(form),
            Shape::Either(shapes) => shapes.iter().find_map(|shape| shape.table_form()),
            Shape::Scalar(_)
            | Shape::List(_)
            | Shape::Any(_)
            | Shape::Pair(_)
            | Shape::Couple(..)
            | Shape::Tables(_)
            | Shape::Named(_)
            | Shape::Texts
            | Shape::Tagged(_) => None,
        }
    }
}
