//! A scenario laid over the configuration it starts from.
//!
//! Tables are merged key by key, arrays of tables by the names of their elements. Everything else is replaced as a whole,
//! and so are tables that come in kinds (a service, arrivals, a distribution): half of one kind is of no use to another.

use super::{Entry, Node, Table, Value};
use crate::form::{Form, Rule, Shape};

/// `over` laid over `under`, both of `form`.
pub(crate) fn merge(mut under: Table, over: Table, form: &'static Form) -> Table {
    for entry in over.entries {
        let shape = form.key(&entry.key).map(|key| key.shape);
        lay(&mut under, entry, shape);
    }
    under
}

fn lay(under: &mut Table, entry: Entry, shape: Option<Shape>) {
    let Some(old) = under.get_mut(&entry.key) else { return under.put(entry) };
    let Entry { key, place, node } = entry;
    let old = std::mem::replace(&mut old.value, Value::Flag(false));
    let value = match (shape, old, node.value) {
        (Some(Shape::Table(form)), Value::Table(old), Value::Table(new)) if form.rule == Rule::Any => {
            Value::Table(merge(old, new, form))
        }
        (Some(Shape::Named(form)), Value::Table(old), Value::Table(new)) => Value::Table(merge_named(old, new, form)),
        (Some(Shape::Tables(form)), Value::List(old), Value::List(new)) => Value::List(merge_lists(old, new, form)),
        (Some(Shape::Texts), Value::Table(mut old), Value::Table(new)) => {
            new.entries.into_iter().for_each(|entry| old.put(entry));
            Value::Table(old)
        }
        (_, _, new) => new,
    };
    under.put(Entry { key, place, node: Node { place: node.place, value } });
}

fn merge_named(mut under: Table, over: Table, form: &'static Form) -> Table {
    over.entries.into_iter().for_each(|entry| lay(&mut under, entry, Some(Shape::Table(form))));
    under
}

fn merge_lists(mut under: Vec<Node>, over: Vec<Node>, form: &'static Form) -> Vec<Node> {
    for new in over {
        let name = new.as_table().and_then(Table::name);
        let old = under.iter_mut().find(|old| name.is_some() && old.as_table().and_then(Table::name) == name);
        match (old, new) {
            (Some(Node { place, value: Value::Table(old) }), Node { place: new_place, value: Value::Table(new) }) => {
                *old = merge(std::mem::take(old), new, form);
                *place = new_place;
            }
            (_, new) => under.push(new),
        }
    }
    under
}
