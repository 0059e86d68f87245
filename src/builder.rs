use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nacp_link::{Admittance, Config, ConfigError, Node, OverflowPolicy};
use nacp_proto::{AppId, AppIdError, Decl, Entry, Payload, PayloadError};
use nacp_transport_tcp::Options;
use serde::Serialize;
use smol_str::SmolStr;
use thiserror::Error;

use crate::closures::Raw;
use crate::driver::{Core, Parts, now};
use crate::{
    AbilityContext, AbilityHandler, EventContext, EventHandler, HandlerError, IntoAbility,
    IntoEvent, Listener, NApp, Reconnect, RegisterPolicy, TcpTransport, Transport, TransportError,
};

/// Why an app could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its name is none.
    #[error("no app: {0}")]
    App(#[from] AppIdError),
    /// An option makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Two handlers have one name.
    #[error("there are two handlers for the {kind} `{name}`")]
    DuplicateHandler {
        /// `ability` or `event`.
        kind: &'static str,
        /// The name.
        name: SmolStr,
    },
    /// The credential cannot go over the wire.
    #[error("cannot encode the credential: {0}")]
    Auth(#[from] PayloadError),
    /// It cannot listen.
    #[error("cannot listen on `{address}`: {source}")]
    Listen {
        /// The address.
        address: String,
        /// Why not.
        source: TransportError,
    },
    /// The operating system gave no random bytes, which ids and sessions come from.
    #[error("no random bytes from the operating system: {0}")]
    Random(getrandom::Error),
}

/// Puts an app together. What is wrong with any part is told by [`start`](Self::start).
#[must_use = "nothing happens before the app is started"]
pub struct Builder {
    config: Result<Config, StartError>,
    listens: Vec<String>,
    options: Options,
    max_message_bytes: Option<u64>,
    transport: Option<Arc<dyn Transport>>,
    abilities: HashMap<SmolStr, Arc<dyn AbilityHandler>>,
    events: HashMap<SmolStr, Arc<dyn EventHandler>>,
    decl: Decl,
    policy: Option<Arc<dyn RegisterPolicy>>,
    reconnect: Reconnect,
    auth: Option<Payload>,
    stream_capacity: usize,
    exposes_internal_events: bool,
    seed: Option<[u8; 32]>,
}

macro_rules! forwarded {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty;)+) => {
        impl Builder {
            $(
                $(#[doc = $doc])+
                pub fn $name(self, $name: $type) -> Self {
                    self.config(|config| config.$name($name))
                }
            )+
        }
    };
}

forwarded! {
    /// As [`Config::ack_timeout`]. Default 10 s.
    ack_timeout: Duration;
    /// As [`Config::reconnect_grace`]. Default 120 s.
    reconnect_grace: Duration;
    /// As [`Config::heartbeat_interval`]. Default 60 s.
    heartbeat_interval: Option<Duration>;
    /// As [`Config::response_timeout`]. Default 10 s.
    response_timeout: Duration;
    /// As [`Config::handshake_timeout`]. Default 10 s.
    handshake_timeout: Duration;
    /// As [`Config::terminate_timeout`]. Default 10 s.
    terminate_timeout: Duration;
    /// As [`Config::takeover_probe`]. Default 2 s.
    takeover_probe: Duration;
    /// As [`Config::overflow`]. Default [`OverflowPolicy::Evict`].
    overflow: OverflowPolicy;
}

impl Builder {
    pub(crate) fn new(app: Result<AppId, AppIdError>) -> Self {
        Self {
            config: app.map(Config::new).map_err(StartError::from),
            listens: Vec::new(),
            options: Options::default(),
            max_message_bytes: None,
            transport: None,
            abilities: HashMap::new(),
            events: HashMap::new(),
            decl: Decl::default(),
            policy: None,
            reconnect: Reconnect::default(),
            auth: None,
            stream_capacity: 1024,
            exposes_internal_events: false,
            seed: None,
        }
    }

    /// Sets options of the node: see [`Config`]. Its declarations, its admittance and what has a
    /// method of its own here are set by the builder.
    pub fn config(mut self, set: impl FnOnce(Config) -> Config) -> Self {
        self.config = self.config.map(set);
        self
    }

    /// Sets options of TCP connections. Of no use with another transport.
    pub fn tcp(mut self, set: impl FnOnce(Options) -> Options) -> Self {
        self.options = set(self.options);
        self
    }

    /// Makes connections by another transport than TCP.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// Listens on an address, from the start to the end; may be called several times. Port 0 is a
    /// free one, told by [`NApp::listen_addrs`].
    pub fn listen(mut self, address: impl ToString) -> Self {
        self.listens.push(address.to_string());
        self
    }

    /// Has an ability, answered by an async closure over serde types: see [`IntoAbility`].
    pub fn ability<Shape>(self, name: &str, closure: impl IntoAbility<Shape>) -> Self {
        self.ability_with(name, closure.into_ability())
    }

    /// Has an ability, answered by a closure over payloads as they are.
    pub fn ability_raw<F, Fut>(self, name: &str, closure: F) -> Self
    where
        F: Fn(AbilityContext, Payload) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Payload, HandlerError>> + Send + 'static,
    {
        self.ability_with(name, Raw(closure))
    }

    /// Has an ability, answered by this handler.
    pub fn ability_with(mut self, name: &str, handler: impl AbilityHandler) -> Self {
        let name = SmolStr::new(name);
        self.decl.abilities.push(entry(&name));
        if self
            .abilities
            .insert(name.clone(), Arc::new(handler))
            .is_some()
        {
            self = self.fail(duplicate("ability", name));
        }
        self
    }

    /// Can run an event, by an async closure over serde types: see [`IntoEvent`].
    pub fn event<Shape>(self, name: &str, closure: impl IntoEvent<Shape>) -> Self {
        self.event_with(name, closure.into_event())
    }

    /// Can run an event, by a closure over payloads as they are.
    pub fn event_raw<F, Fut>(self, name: &str, closure: F) -> Self
    where
        F: Fn(EventContext, Payload) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Payload, HandlerError>> + Send + 'static,
    {
        self.event_with(name, Raw(closure))
    }

    /// Can run an event, by this handler.
    pub fn event_with(mut self, name: &str, handler: impl EventHandler) -> Self {
        let name = SmolStr::new(name);
        self.decl.events.push(entry(&name));
        if self
            .events
            .insert(name.clone(), Arc::new(handler))
            .is_some()
        {
            self = self.fail(duplicate("event", name));
        }
        self
    }

    /// What peers are told of the ability or event that was named last, or of all by that name.
    /// Without it a description is the name.
    pub fn describe(mut self, name: &str, description: &str) -> Self {
        let entries = self.decl.abilities.iter_mut().chain(&mut self.decl.events);
        for entry in entries.filter(|entry| entry.name == name) {
            entry.description = description.into();
        }
        self
    }

    /// Forwards messages between the apps that are linked with this one (specification, section 9).
    pub fn gateway(self) -> Self {
        self.config(|config| config.is_gateway(true))
    }

    /// Asks this policy who may register. Without one everybody may.
    pub fn policy(mut self, policy: impl RegisterPolicy) -> Self {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// The credential for the policies of the apps that are dialled.
    pub fn auth(mut self, credential: &(impl Serialize + ?Sized)) -> Self {
        match Payload::new(credential) {
            Ok(credential) => self.auth = Some(credential),
            Err(error) => self = self.fail(error.into()),
        }
        self
    }

    /// How dialled links are made again. Default [`Reconnect::default`]: on.
    pub fn reconnect(mut self, reconnect: Reconnect) -> Self {
        self.reconnect = reconnect;
        self
    }

    /// Records of each table of the node, and items that a stream holds for its reader. Default 1024.
    pub fn queue_max_count(mut self, count: usize) -> Self {
        self.stream_capacity = count;
        self.config(|config| config.queue_max_count(count))
    }

    /// The largest message taken, in bytes, by the node and by its connections. Default 2 GiB.
    pub fn max_message_bytes(mut self, bytes: u64) -> Self {
        self.max_message_bytes = Some(bytes);
        self.config(|config| config.max_message_bytes(bytes))
    }

    /// Lets remote subscribers hear what the node reports about its own traffic. Default not.
    pub fn expose_internal_events(mut self) -> Self {
        self.exposes_internal_events = true;
        self.config(|config| config.expose_internal_events(true))
    }

    /// Takes the place of the operating system's random bytes, for tests that are to be replayed.
    /// Ids and sessions can be guessed by who knows it.
    pub fn seed(mut self, seed: [u8; 32]) -> Self {
        self.seed = Some(seed);
        self
    }

    fn fail(mut self, error: StartError) -> Self {
        self.config = self.config.and(Err(error));
        self
    }

    /// Starts the app on the runtime of the caller.
    ///
    /// # Errors
    ///
    /// [`StartError`], for the first part that is wrong; nothing is left running then.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with its timer on, as everything of tokio.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn start(self) -> Result<NApp, StartError> {
        let mut config = self.config?.decl(self.decl.clone());
        if self.policy.is_some() {
            config = config.admittance(Admittance::Ask);
        }
        let options = match self.max_message_bytes {
            Some(bytes) => limited(self.options, bytes),
            None => self.options,
        };
        let transport = self
            .transport
            .unwrap_or_else(|| Arc::new(TcpTransport::new(options)));
        let seed = self.seed.map_or_else(random_seed, Ok)?;
        let app = config.app_id().clone();
        let node = Node::new(config, now(), unix_ms(), seed)?;
        let listeners = bind(&*transport, self.listens).await?;
        let is_open = self.policy.is_none();
        warn_of_strangers(&app, is_open, &listeners);
        let core = Core::start(
            node,
            Parts {
                app,
                abilities: self.abilities,
                events: self.events,
                policy: self.policy,
                transport,
                reconnect: self.reconnect,
                auth: self.auth,
                introduction: Payload::new(&self.decl)?,
                stream_capacity: self.stream_capacity,
                exposes_internal_events: self.exposes_internal_events,
                listens: listeners
                    .iter()
                    .map(|listener| (listener.local_address(), listener.local_addr()))
                    .collect(),
            },
        );
        for listener in listeners {
            core.accept_from(listener);
        }
        Ok(NApp::new(core))
    }
}

async fn bind(
    transport: &dyn Transport,
    addresses: Vec<String>,
) -> Result<Vec<Box<dyn Listener>>, StartError> {
    let mut listeners = Vec::with_capacity(addresses.len());
    for address in addresses {
        match transport.listen(&address).await {
            Ok(listener) => listeners.push(listener),
            Err(source) => return Err(StartError::Listen { address, source }),
        }
    }
    Ok(listeners)
}

/// A node that takes everybody, and can be reached from elsewhere, says so once.
fn warn_of_strangers(app: &AppId, is_open: bool, listeners: &[Box<dyn Listener>]) {
    for addr in listeners
        .iter()
        .filter_map(|listener| listener.local_addr())
    {
        if is_open && !addr.ip().is_loopback() {
            tracing::warn!(%app, %addr, "every app may register here: there is no policy");
        }
    }
}

fn limited(options: Options, max_message_bytes: u64) -> Options {
    options.limits(nacp_proto::ReassemblyLimits::default().max_message_bytes(max_message_bytes))
}

fn random_seed() -> Result<[u8; 32], StartError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(StartError::Random)?;
    Ok(seed)
}

/// The wall clock; 0 if it stands before 1970.
fn unix_ms() -> f64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the wall clock"
    )]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH)
        .map_or(0.0, |elapsed| elapsed.as_millis() as f64)
}

fn entry(name: &SmolStr) -> Entry {
    Entry {
        name: name.clone(),
        description: name.clone(),
    }
}

const fn duplicate(kind: &'static str, name: SmolStr) -> StartError {
    StartError::DuplicateHandler { kind, name }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .field("listens", &self.listens)
            .finish_non_exhaustive()
    }
}
