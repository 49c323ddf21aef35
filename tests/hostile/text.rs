//! Files changed at random: bytes, and what lies between blanks, quotes and brackets.

use crate::dice::Dice;

/// What stands for a number that nobody meant.
const NUMBERS: [&str; 24] = [
    "0",
    "-0",
    "-1",
    "1e308",
    "1e309",
    "-1e308",
    "1e-400",
    "1e999999999",
    "NaN",
    "nan",
    "inf",
    "-inf",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "0x7fffffffffffffff",
    "0.000000000000000000000001",
    "99999999999999999999999999999999999999999",
    "1_0",
    "+1",
    "01",
];
/// What stands for a span, a size or a share that nobody meant.
const QUANTITIES: [&str; 16] = [
    "0s",
    "-1s",
    "1e30s",
    "584y",
    "18446744073709551615ns",
    "18446744073709551616ns",
    "1e308h",
    "0.0000000001ns",
    "16EiB",
    "99999999999TiB",
    "-1GiB",
    "1e400%",
    "100.0000001%",
    "",
    " ",
    "5 s",
];
/// Bytes that mean something to one of the readers.
const BYTES: [u8; 20] =
    [0, 1, 9, 10, 11, 13, 32, b'"', b'\'', b'\\', b'[', b']', b'{', b'}', b'=', b',', b'#', 0x7f, 0xc0, 0xff];
/// What is no text, or is seldom in one.
const NO_TEXT: [&[u8]; 5] = [b"\xff\xfe", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3", b"\0"];
/// How deep, how long.
const MEASURES: [usize; 9] = [2, 20, 60, 100, 130, 260, 1_000, 5_000, 50_000];

/// Changes `text` a few times; `other` is another file to take parts of.
pub fn change(text: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    for _ in 0..1 + dice.roll(4) {
        match dice.roll(18) {
            0..=3 => replace_number(text, dice),
            4 | 5 => replace_token(text, other, dice),
            6 | 7 => change_lines(text, other, dice),
            8..=10 => change_bytes(text, dice),
            11 | 12 => move_part(text, other, dice),
            13 => insert(text, &nested(dice), dice),
            14 => insert(text, &long(dice), dice),
            15 => {
                let part = dice.pick(&NO_TEXT);
                insert(text, part, dice);
            }
            16 => change_ends(text, dice),
            _ => text.truncate(dice.roll(text.len() + 1)),
        }
    }
}

fn insert(text: &mut Vec<u8>, part: &[u8], dice: &mut Dice) {
    let at = dice.roll(text.len() + 1);
    text.splice(at..at, part.iter().copied());
}

/// Brackets within brackets, keys within keys.
fn nested(dice: &mut Dice) -> Vec<u8> {
    let depth = *dice.pick(&MEASURES);
    let (open, close) =
        *dice.pick(&[("[", "]"), ("{a=", "}"), ("{\"a\":", "}"), ("(", ")"), ("a.", ""), ("\"", "\""), ("[[", "]]")]);
    let middle = *dice.pick(&["", "1", "a=1"]);
    let close = if dice.one_in(2) { close } else { "" };
    [open.repeat(depth), middle.to_owned(), close.repeat(depth)].concat().into_bytes()
}

fn long(dice: &mut Dice) -> Vec<u8> {
    let one = *dice.pick(&["x", "9", "é", "\u{10ffff}", "\\", " ", "\n", "-", "x = 1\n", "0."]);
    one.repeat(*dice.pick(&MEASURES)).into_bytes()
}

/// Where each run of bytes lies that are alike by `kind`.
fn runs(text: &[u8], kind: impl Fn(u8) -> bool) -> Vec<std::ops::Range<usize>> {
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    for at in (0..text.len()).filter(|&at| kind(text[at])) {
        match found.last_mut() {
            Some(last) if last.end == at => last.end = at + 1,
            _ => found.push(at..at + 1),
        }
    }
    found
}

fn replace_number(text: &mut Vec<u8>, dice: &mut Dice) {
    let numbers = runs(text, |byte| byte.is_ascii_digit() || byte == b'.');
    if numbers.is_empty() {
        return;
    }
    let mut at = dice.pick(&numbers).clone();
    // Now and then the unit goes as well.
    if dice.one_in(3) {
        while text.get(at.end).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'%') {
            at.end += 1;
        }
        text.splice(at, dice.pick(&QUANTITIES).bytes());
    } else {
        text.splice(at, dice.pick(&NUMBERS).bytes());
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' || byte >= 0x80
}

fn replace_token(text: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let (own, theirs) = (runs(text, is_word), runs(other, is_word));
    if own.is_empty() || theirs.is_empty() {
        return;
    }
    let at = dice.pick(&own).clone();
    let word = if dice.one_in(2) {
        text[dice.pick(&own).clone()].to_vec()
    } else {
        other[dice.pick(&theirs).clone()].to_vec()
    };
    text.splice(at, word);
}

fn change_lines(text: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let mut lines: Vec<Vec<u8>> = text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    let theirs: Vec<&[u8]> = other.split_inclusive(|&byte| byte == b'\n').collect();
    if lines.is_empty() || theirs.is_empty() {
        return;
    }
    let (one, two) = (dice.roll(lines.len()), dice.roll(lines.len()));
    match dice.roll(4) {
        0 => drop(lines.remove(one)),
        1 => lines.insert(two, lines[one].clone()),
        2 => lines.swap(one, two),
        _ => lines.insert(one, dice.pick(&theirs).to_vec()),
    }
    *text = lines.concat();
}

fn change_bytes(text: &mut Vec<u8>, dice: &mut Dice) {
    let at = dice.range(text.len());
    match dice.roll(4) {
        0 => drop(text.drain(at)),
        1 => insert(text, &[*dice.pick(&BYTES)], dice),
        2 => text[at].iter_mut().take(1).for_each(|byte| *byte ^= 1 << dice.roll(8)),
        _ => text[at].iter_mut().take(1).for_each(|byte| *byte = *dice.pick(&BYTES)),
    }
}

fn move_part(text: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let part =
        if dice.one_in(2) { text[dice.range(text.len())].to_vec() } else { other[dice.range(other.len())].to_vec() };
    if dice.one_in(8) {
        let cut = dice.roll(text.len() + 1);
        text.truncate(cut);
        text.extend_from_slice(&other[dice.roll(other.len() + 1)..]);
    } else {
        insert(text, &part, dice);
    }
}

/// Ends of lines as elsewhere, and the mark that some editors begin files with.
fn change_ends(text: &mut Vec<u8>, dice: &mut Dice) {
    if dice.one_in(2) {
        text.splice(0..0, *b"\xef\xbb\xbf");
    } else {
        let end: &[u8] = if dice.one_in(2) { b"\r\n" } else { b"\r" };
        *text = text.split(|&byte| byte == b'\n').collect::<Vec<_>>().join(end);
    }
}
