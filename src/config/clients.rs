//! Who may call a gateway.

use std::fmt;

use subtle::ConstantTimeEq;

use crate::call::Key;
use crate::config_error::ConfigError;
use crate::reading::{Env, secret};

use super::sections::ClientSection;

/// A caller of a gateway, known by its key.
#[derive(Clone)]
pub struct Client {
    name: Key,
    key: Box<[u8]>,
    models: Option<Vec<String>>,
}

impl Client {
    /// Its name: the tenant of its calls.
    #[must_use]
    pub fn name(&self) -> &Key {
        &self.name
    }

    /// Whether it may ask for this model. Without a list it may ask for all; with one, also a call that names no model is
    /// none of its own.
    #[must_use]
    pub fn may_use(&self, model: Option<&str>) -> bool {
        match (&self.models, model) {
            (None, _) => true,
            (Some(models), Some(model)) => models.iter().any(|allowed| allowed == model),
            (Some(_), None) => false,
        }
    }
}

/// Shows no key.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("name", &self.name)
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

/// All callers that are known.
#[derive(Clone, Debug, Default)]
pub struct Clients(Vec<Client>);

impl Clients {
    pub(super) fn of(sections: &[ClientSection], env: Env<'_>) -> Result<Self, ConfigError> {
        let mut clients: Vec<Client> = Vec::with_capacity(sections.len());
        for (at, section) in sections.iter().enumerate() {
            let wrong = |field: &str, problem: &'static str| {
                Err(ConfigError::new(format!("clients[{at}].{field}"), problem))
            };
            let key =
                secret("key", &section.key, env).map_err(|error| error.under(&format!("clients[{at}]")))?;
            if section.name.is_empty() {
                return wrong("name", "must not be empty");
            }
            if key.trim().is_empty() {
                return wrong("key", "must not be empty");
            }
            if clients.iter().any(|known| known.name.as_str() == section.name) {
                return wrong("name", "is another client's too");
            }
            if clients.iter().any(|known| *known.key == *key.as_bytes()) {
                return wrong("key", "is another client's too");
            }
            clients.push(Client {
                name: Key::from(section.name.as_str()),
                key: key.into_bytes().into(),
                models: section.models.clone(),
            });
        }
        Ok(Self(clients))
    }

    /// Whose key this is. All keys are compared, each in a time that does not depend on where it differs.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<&Client> {
        let mut found = None;
        for client in &self.0 {
            if bool::from(client.key.ct_eq(key)) {
                found = Some(client);
            }
        }
        found
    }

    /// Whether there are none: then no key is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Client> {
        self.0.iter()
    }
}
