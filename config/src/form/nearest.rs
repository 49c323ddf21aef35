//! "Did you mean".

/// ``did you mean `alpha`?``, where one of `known` is close enough to `given` to be meant.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(given, known).map(|name| format!("did you mean `{name}`?"))
}

/// The closest of `known`: within a third of its letters by edits with swaps, or an unfinished form of it.
fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = plain(given);
    let ranked = known.into_iter().filter_map(|name| {
        let other = self::plain(name);
        let distance = strsim::damerau_levenshtein(&plain, &other);
        let unfinished = plain.len() >= 3 && (other.starts_with(&plain) || plain.starts_with(&other));
        let near = distance <= (other.chars().count() / 3).max(1) || unfinished;
        near.then_some((distance, name))
    });
    ranked.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

fn plain(name: &str) -> String {
    name.chars().take(80).map(|one| if one == '-' { '_' } else { one.to_ascii_lowercase() }).collect()
}

/// `a, b, c`, or a word where there is nothing.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_one_that_could_be_meant() {
        let known = ["alpha", "beta", "noise", "background_share"];
        assert_eq!(nearest("alhpa", known), Some("alpha"));
        assert_eq!(nearest("background-share", known), Some("background_share"));
        assert_eq!(nearest("background", known), Some("background_share"));
        assert_eq!(nearest("bata", known), Some("beta"));
        assert_eq!(nearest("gamma", known), None);
        assert_eq!(nearest("x", known), None);
    }
}
