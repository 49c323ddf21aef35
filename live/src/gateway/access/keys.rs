//! Keys: how they are presented, compared and counted.
//!
//! What is kept and compared are digests, all of them every time, so that neither the length nor the place of a key shows in the
//! time an answer takes.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use windtunnel_core::{Class, LabelId};

use crate::gateway::settings::{Key, Secret, Settings};

type Fingerprint = [u8; 32];

/// Everybody's keys.
#[derive(Debug, Default)]
pub(in crate::gateway) struct KeyRing {
    keys: Vec<Known>,
    admins: Vec<Fingerprint>,
}

#[derive(Debug)]
struct Known {
    name: String,
    /// `None`: nobody has it any more.
    fingerprint: Option<Fingerprint>,
    classes: Vec<Class>,
    default_class: Option<Class>,
    most: Option<u32>,
    busy: Arc<AtomicU32>,
}

/// Somebody who may ask, for as long as his request lasts.
#[derive(Debug)]
pub(in crate::gateway) struct Caller {
    /// Whom reports name.
    pub label: LabelId,
    /// The class of what names none.
    pub default_class: Option<Class>,
    classes: Vec<Class>,
    _busy: Option<Busy>,
}

/// Why somebody may not ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum NoEntry {
    /// He presents no key.
    NoKey,
    /// Nobody has that key.
    WrongKey,
    /// As many requests of his are under way as may be.
    Busy { most: u32 },
}

/// Whose key a request presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Presented {
    /// None is presented.
    Nothing,
    /// Nobody's.
    Unknown,
    /// A client's.
    Clients,
    /// The operator's.
    Operators,
}

/// A request that counts among those under way.
#[derive(Debug)]
struct Busy(Arc<AtomicU32>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl KeyRing {
    /// The keys of `settings`; who has requests under way keeps their number.
    pub(in crate::gateway) fn of(settings: &Settings, before: &KeyRing) -> KeyRing {
        let known = |(place, key): (usize, &Key)| Known {
            name: key.name.clone(),
            fingerprint: (!settings.retired.contains(&place)).then(|| fingerprint(key.secret.bytes())),
            classes: key.classes.clone(),
            default_class: key.default_class,
            most: key.most,
            busy: before.keys.iter().find(|old| old.name == key.name).map(|old| old.busy.clone()).unwrap_or_default(),
        };
        KeyRing {
            keys: settings.keys.iter().enumerate().map(known).collect(),
            admins: settings.admin_keys.iter().map(|key: &Secret| fingerprint(key.bytes())).collect(),
        }
    }

    /// Whether there are no keys, so that everybody may ask.
    fn is_open(&self) -> bool {
        self.keys.iter().all(|key| key.fingerprint.is_none())
    }

    /// Who sends a request.
    pub(in crate::gateway) fn caller(&self, headers: &HeaderMap) -> Result<Caller, NoEntry> {
        if self.is_open() {
            return Ok(Caller { label: LabelId(0), default_class: None, classes: Vec::new(), _busy: None });
        }
        let presented = presented(headers).ok_or(NoEntry::NoKey)?;
        let place = self.place(&fingerprint(&presented)).ok_or(NoEntry::WrongKey)?;
        let key = self.keys.get(place as usize).ok_or(NoEntry::WrongKey)?;
        let busy = key.enter()?;
        Ok(Caller {
            label: LabelId(place + 1),
            default_class: key.default_class,
            classes: key.classes.clone(),
            _busy: Some(busy),
        })
    }

    /// Whether a request may read what any client may: names of models.
    pub(in crate::gateway) fn knows(&self, headers: &HeaderMap) -> Result<(), NoEntry> {
        if self.is_open() {
            return Ok(());
        }
        match self.shown(headers) {
            Presented::Operators | Presented::Clients => Ok(()),
            Presented::Nothing => Err(NoEntry::NoKey),
            Presented::Unknown => Err(NoEntry::WrongKey),
        }
    }

    /// Whether there is an operator's key.
    pub(in crate::gateway) fn has_admin(&self) -> bool {
        !self.admins.is_empty()
    }

    /// Whose key a request presents.
    pub(in crate::gateway) fn shown(&self, headers: &HeaderMap) -> Presented {
        let Some(presented) = presented(headers) else { return Presented::Nothing };
        let presented = fingerprint(&presented);
        let admin = self.admins.iter().fold(Choice::from(0), |found, admin| found | admin.ct_eq(&presented));
        let place = self.place(&presented);
        match (bool::from(admin), place) {
            (true, _) => Presented::Operators,
            (false, Some(_)) => Presented::Clients,
            (false, None) => Presented::Unknown,
        }
    }

    fn place(&self, presented: &Fingerprint) -> Option<u32> {
        let mut found = Choice::from(0);
        let mut place = 0;
        for (number, key) in (0..).zip(&self.keys) {
            let Some(fingerprint) = &key.fingerprint else { continue };
            let same = fingerprint.ct_eq(presented);
            place.conditional_assign(&number, same);
            found |= same;
        }
        bool::from(found).then_some(place)
    }
}

impl Known {
    fn enter(&self) -> Result<Busy, NoEntry> {
        let before = self.busy.fetch_add(1, Ordering::Relaxed);
        let busy = Busy(Arc::clone(&self.busy));
        match self.most {
            Some(most) if before >= most => Err(NoEntry::Busy { most }),
            Some(_) | None => Ok(busy),
        }
    }
}

impl Caller {
    /// The class that counts when `asked` is asked for: itself if it is allowed, else the next lower one that is, else the highest.
    pub(in crate::gateway) fn class(&self, asked: Class) -> Class {
        if self.classes.is_empty() || self.classes.contains(&asked) {
            return asked;
        }
        let allowed = |class: &Class| self.classes.contains(class);
        let lower = Class::ALL.into_iter().filter(|class| *class > asked).find(allowed);
        lower.or_else(|| Class::ALL.into_iter().find(allowed)).unwrap_or(asked)
    }
}

fn fingerprint(key: &[u8]) -> Fingerprint {
    Sha256::digest(key).into()
}

/// The key a request presents: as a bearer, as `x-api-key`, or as the password of a user.
fn presented(headers: &HeaderMap) -> Option<Cow<'_, [u8]>> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, rest) = split_scheme(value.as_bytes());
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return Some(Cow::Borrowed(rest));
        }
        if scheme.eq_ignore_ascii_case(b"basic") {
            let password = password(rest);
            if password.is_some() {
                return password.map(Cow::Owned);
            }
        }
    }
    headers.get("x-api-key").map(|value| Cow::Borrowed(value.as_bytes().trim_ascii()))
}

/// The password of `user:password`; `None`: it is no such thing, as where a proxy's own name stands.
fn password(packed: &[u8]) -> Option<Vec<u8>> {
    let decoded = STANDARD.decode(packed).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    decoded.get(colon + 1..).map(<[u8]>::to_vec)
}

fn split_scheme(value: &[u8]) -> (&[u8], &[u8]) {
    let value = value.trim_ascii();
    let end = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
    let (scheme, rest) = value.split_at(end);
    (scheme, rest.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> KeyRing {
        let key = |name: &str, classes: &[Class], most| Key {
            name: name.to_owned(),
            secret: Secret::new(format!("sk-{name}")),
            classes: classes.to_vec(),
            default_class: None,
            most,
        };
        let settings = Settings {
            keys: vec![key("app", &[], None), key("indexer", &[Class::Batch], Some(1))],
            admin_keys: ["sk-admin", "sk-other"].map(|key| Secret::new(key.to_owned())).to_vec(),
            ..Settings::default()
        };
        KeyRing::of(&settings, &KeyRing::default())
    }

    fn with(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[test]
    fn a_key_may_come_in_three_ways() {
        let ring = ring();
        let basic = format!("basic {}", STANDARD.encode("anybody:sk-indexer"));
        for (name, value, label) in [
            ("authorization", "Bearer sk-app", 1),
            ("authorization", "bearer   sk-app ", 1),
            ("x-api-key", "sk-app", 1),
            ("authorization", basic.as_str(), 2),
        ] {
            assert_eq!(ring.caller(&with(name, value)).unwrap().label, LabelId(label), "{name}: {value}");
        }
        for (name, value) in [("authorization", "Bearer sk-ap"), ("authorization", "Bearer"), ("x-api-key", "sk-app2")]
        {
            assert_eq!(ring.caller(&with(name, value)).unwrap_err(), NoEntry::WrongKey, "{name}: {value}");
        }
        for (name, value) in [("authorization", "Basic %%%"), ("authorization", "sk-app"), ("cookie", "sk-app")] {
            assert_eq!(ring.caller(&with(name, value)).unwrap_err(), NoEntry::NoKey, "{name}: {value}");
        }
    }

    #[test]
    fn what_cannot_be_read_hides_no_key_behind_it() {
        let mut headers = with("x-api-key", "sk-app");
        headers.insert("authorization", "Basic %%%".parse().unwrap());
        assert_eq!(ring().caller(&headers).unwrap().label, LabelId(1));
    }

    #[test]
    fn keys_that_are_gone_are_no_keys() {
        let key = |name: &str| Key {
            name: name.to_owned(),
            secret: Secret::new(format!("sk-{name}")),
            classes: Vec::new(),
            default_class: None,
            most: None,
        };
        let keys = vec![key("app"), key("indexer")];
        let with_one = Settings { keys, retired: [0].into(), ..Settings::default() };
        let ring = KeyRing::of(&with_one, &KeyRing::default());
        assert_eq!(ring.caller(&with("x-api-key", "sk-app")).unwrap_err(), NoEntry::WrongKey);
        assert_eq!(ring.caller(&with("x-api-key", "sk-indexer")).unwrap().label, LabelId(2));
        let ring = KeyRing::of(&Settings { retired: [0, 1].into(), ..with_one }, &ring);
        assert_eq!(ring.caller(&HeaderMap::new()).unwrap().label, LabelId(0), "none is left");
        assert_eq!(ring.knows(&HeaderMap::new()), Ok(()));
    }

    #[test]
    fn a_key_has_so_many_requests_under_way_and_no_more() {
        let (ring, headers) = (ring(), with("x-api-key", "sk-indexer"));
        let first = ring.caller(&headers).unwrap();
        assert_eq!(ring.caller(&headers).unwrap_err(), NoEntry::Busy { most: 1 });
        drop(first);
        assert!(ring.caller(&headers).is_ok(), "the refused one does not count");
    }

    #[test]
    fn a_class_that_is_not_allowed_becomes_the_next_lower() {
        let caller = |classes: &[Class]| Caller {
            label: LabelId(1),
            default_class: None,
            classes: classes.to_vec(),
            _busy: None,
        };
        let [interactive, background, batch] = Class::ALL;
        assert_eq!(caller(&[]).class(interactive), interactive);
        assert_eq!(caller(&[background, batch]).class(interactive), background);
        assert_eq!(caller(&[interactive, batch]).class(background), batch);
        assert_eq!(caller(&[interactive]).class(batch), interactive);
    }

    #[test]
    fn operators_have_their_own_key() {
        let ring = ring();
        assert_eq!(ring.shown(&with("x-api-key", "sk-admin")), Presented::Operators);
        assert_eq!(ring.shown(&with("x-api-key", "sk-other")), Presented::Operators);
        assert_eq!(ring.shown(&with("x-api-key", "sk-app")), Presented::Clients);
        assert_eq!(ring.shown(&with("x-api-key", "sk-ap")), Presented::Unknown);
        assert_eq!(ring.shown(&HeaderMap::new()), Presented::Nothing);
        assert_eq!((ring.has_admin(), KeyRing::default().has_admin()), (true, false));
        assert_eq!(ring.knows(&with("x-api-key", "sk-admin")), Ok(()));
        assert_eq!(ring.caller(&with("x-api-key", "sk-admin")).unwrap_err(), NoEntry::WrongKey);
    }
}
