use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

/// Where to dial or to listen: `HOST:PORT`, `1.2.3.4:PORT`, `[IPv6]:PORT` or `[IPv6%SCOPE]:PORT`.
///
/// A host name stays a name and is resolved at each dial anew. A scope is kept as it is written.
/// What [`Display`](fmt::Display) prints can be parsed again.
///
/// ```
/// use nacp_transport_tcp::{Address, AddressError};
///
/// let address: Address = "[::1]:7000".parse()?;
/// assert_eq!(address.to_string(), "[::1]:7000");
/// assert_eq!("::1:7000".parse::<Address>(), Err(AddressError::Ambiguous { hint: "[::1]:7000".into() }));
/// # Ok::<_, AddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    host: Host,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Host {
    Ip(IpAddr),
    /// An IPv6 address with a scope, which the resolver understands: an interface's name or number.
    Scoped(Ipv6Addr, Box<str>),
    Name(Box<str>),
}

/// Why a text is no [`Address`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Nothing was given.
    #[error("address is empty")]
    Empty,
    /// There is nothing before the port.
    #[error("host is missing")]
    MissingHost,
    /// There is no port.
    #[error("port is missing: write {hint}")]
    MissingPort {
        /// What to write instead.
        hint: Box<str>,
    },
    /// The port is no number from 0 to 65535.
    #[error("port `{port}` is not a number from 1 to 65535")]
    BadPort {
        /// What was given.
        port: Box<str>,
    },
    /// Port 0 cannot be dialled; a listener may have it.
    #[error("port 0 cannot be dialled")]
    PortZero,
    /// An IPv6 address without brackets, whose last part may be a port or not.
    #[error("address is ambiguous: if the last part is the port, write {hint}")]
    Ambiguous {
        /// What to write instead.
        hint: Box<str>,
    },
    /// A bracket without its partner, or something else than an IPv6 address between them.
    #[error("brackets do not hold an IPv6 address")]
    BadBrackets,
    /// The scope behind the `%` is empty.
    #[error("scope of the IPv6 address is empty")]
    EmptyScope,
    /// A host name with characters that none has, or longer than 253 bytes.
    #[error("`{host}` is no host name")]
    BadHost {
        /// What was given.
        host: Box<str>,
    },
}

impl Address {
    /// Parses an address to listen on: as [`FromStr`], but port 0 is allowed and stands for a free
    /// port.
    ///
    /// # Errors
    ///
    /// As [`FromStr`].
    pub fn to_listen_on(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if text.starts_with('[') {
            return parse_bracketed(text);
        }
        match text.rsplit_once(':') {
            None => Err(AddressError::MissingPort {
                hint: format!("{text}:PORT").into(),
            }),
            Some((host, port)) if host.contains(':') => Err(without_brackets(text, host, port)),
            Some(("", _)) => Err(AddressError::MissingHost),
            Some((host, port)) => Ok(Self {
                host: parse_host(host)?,
                port: parse_port(port)?,
            }),
        }
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The address in numbers, if it needs no resolver.
    pub(crate) const fn ip(&self) -> Option<SocketAddr> {
        match self.host {
            Host::Ip(ip) => Some(SocketAddr::new(ip, self.port)),
            Host::Scoped(..) | Host::Name(_) => None,
        }
    }

    /// What the resolver is asked for.
    pub(crate) fn host(&self) -> String {
        match &self.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Scoped(ip, scope) => format!("{ip}%{scope}"),
            Host::Name(name) => name.to_string(),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    /// Parses an address to dial.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let address = Self::to_listen_on(text)?;
        if address.port == 0 {
            Err(AddressError::PortZero)
        } else {
            Ok(address)
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(addr: SocketAddr) -> Self {
        let host = match addr {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => {
                Host::Scoped(*v6.ip(), v6.scope_id().to_string().into())
            }
            SocketAddr::V4(_) | SocketAddr::V6(_) => Host::Ip(addr.ip()),
        };
        Self {
            host,
            port: addr.port(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(ip) => write!(f, "{}", SocketAddr::new(*ip, self.port)),
            Host::Scoped(ip, scope) => write!(f, "[{ip}%{scope}]:{}", self.port),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

fn parse_bracketed(text: &str) -> Result<Address, AddressError> {
    let (inside, behind) = text[1..].split_once(']').ok_or(AddressError::BadBrackets)?;
    let host = parse_ipv6(inside)?.ok_or(AddressError::BadBrackets)?;
    if behind.is_empty() {
        return Err(AddressError::MissingPort {
            hint: format!("{text}:PORT").into(),
        });
    }
    let port = behind.strip_prefix(':').ok_or(AddressError::BadBrackets)?;
    Ok(Address {
        host,
        port: parse_port(port)?,
    })
}

/// An IPv6 address with or without a scope; `None` if it is none.
fn parse_ipv6(text: &str) -> Result<Option<Host>, AddressError> {
    let (ip, scope) = match text.split_once('%') {
        Some((ip, scope)) => (ip, Some(scope)),
        None => (text, None),
    };
    let Ok(ip) = ip.parse::<Ipv6Addr>() else {
        return Ok(None);
    };
    match scope {
        None => Ok(Some(Host::Ip(ip.into()))),
        Some("") => Err(AddressError::EmptyScope),
        Some(scope) if scope.bytes().all(is_in_names) => Ok(Some(Host::Scoped(ip, scope.into()))),
        Some(_) => Err(AddressError::BadHost { host: text.into() }),
    }
}

/// What is wrong with a text that has several colons and no brackets.
fn without_brackets(text: &str, host: &str, port: &str) -> AddressError {
    let is_ipv6 = |text| matches!(parse_ipv6(text), Ok(Some(_)));
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if is_ipv6(host) && is_port {
        AddressError::Ambiguous {
            hint: format!("[{host}]:{port}").into(),
        }
    } else if is_ipv6(text) {
        AddressError::MissingPort {
            hint: format!("[{text}]:PORT").into(),
        }
    } else if text.contains(['[', ']']) {
        AddressError::BadBrackets
    } else {
        AddressError::BadHost { host: text.into() }
    }
}

fn parse_port(port: &str) -> Result<u16, AddressError> {
    // `u16::from_str` would take a plus sign.
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let number = port.parse().ok().filter(|_| digits);
    number.ok_or_else(|| AddressError::BadPort { port: port.into() })
}

fn parse_host(host: &str) -> Result<Host, AddressError> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(Host::Ip(ip));
    }
    if host.len() > 253 || !host.bytes().all(is_in_names) {
        return Err(AddressError::BadHost { host: host.into() });
    }
    Ok(Host::Name(host.into()))
}

/// Letters of other scripts are left to the resolver.
const fn is_in_names(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_') || !byte.is_ascii()
}
