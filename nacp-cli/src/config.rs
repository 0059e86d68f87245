//! The file with named targets.

mod secret;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use nacp::proto::AppId;
use serde::{Deserialize, Deserializer, de};

use crate::args::duration;
use crate::escape::escaped;
use crate::failure::Failure;
use crate::target::Target;

pub(crate) use secret::Secret;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    /// The context that is taken if none is named.
    default: Option<String>,
    #[serde(default)]
    context: BTreeMap<String, Context>,
}

/// A named target, with what else belongs to it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Context {
    #[serde(default, deserialize_with = "parsed")]
    pub(crate) target: Option<Target>,
    #[serde(default, rename = "as", deserialize_with = "parsed")]
    pub(crate) own: Option<AppId>,
    #[serde(default, deserialize_with = "time")]
    pub(crate) timeout: Option<Duration>,
    #[serde(default, deserialize_with = "time")]
    pub(crate) connect_timeout: Option<Duration>,
    /// Where the credential is, never the credential itself.
    auth_file: Option<PathBuf>,
    auth_env: Option<String>,
    /// What `auth_file` is relative to.
    #[serde(skip)]
    directory: PathBuf,
}

impl Context {
    /// The context of this name, or the default one; an empty one if there is no file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or does not have the context.
    pub(crate) fn load(name: Option<&str>) -> Result<Self, Failure> {
        let Some(path) = path() else {
            return Self::find(File::default(), name, Path::new("the config file"));
        };
        let file = match fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|error| {
                Failure::usage(format!(
                    "{}: {}",
                    path.display(),
                    error.to_string().trim_end()
                ))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => File::default(),
            Err(error) => {
                return Err(Failure::local(
                    "config",
                    format!("{}: {error}", path.display()),
                ));
            }
        };
        Self::find(file, name, &path)
    }

    fn find(mut file: File, name: Option<&str>, path: &Path) -> Result<Self, Failure> {
        let Some(name) = name.or(file.default.as_deref()) else {
            return Ok(Self::default());
        };
        let Some(mut context) = file.context.remove(name) else {
            let known: Vec<_> = file.context.keys().map(escaped).collect();
            let failure = Failure::usage(format!("there is no context `{}`", escaped(name)));
            return Err(failure.hint(match known[..] {
                [] => format!("{} has no [context.{}]", path.display(), escaped(name)),
                _ => format!("{} has {}", path.display(), known.join(", ")),
            }));
        };
        context.directory = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(context)
    }

    /// The credential, read where the context says it is.
    ///
    /// # Errors
    ///
    /// If it is not there, or a file that others may read.
    pub(crate) fn secret(&self) -> Result<Option<Secret>, Failure> {
        if let Some(file) = &self.auth_file {
            return Secret::from_file(&self.directory.join(file)).map(Some);
        }
        let Some(name) = &self.auth_env else {
            return Ok(None);
        };
        match env::var(name) {
            Ok(secret) => Ok(Some(Secret::new(secret))),
            Err(_) => Err(Failure::local(
                "auth",
                format!("the environment has no {}", escaped(name)),
            )),
        }
    }
}

fn path() -> Option<PathBuf> {
    if let Some(path) = env::var_os("NACP_CONFIG") {
        return Some(path.into());
    }
    let directories = directories::ProjectDirs::from("", "", "nacp-cli")?;
    Some(directories.config_dir().join("config.toml"))
}

fn parsed<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(de::Error::custom)
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    duration(&text).map(Some).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::{Context, File};
    use std::path::Path;

    fn find(toml: &str, name: Option<&str>) -> Result<Context, String> {
        let file: File = toml::from_str(toml).map_err(|error| error.to_string())?;
        let found = Context::find(file, name, Path::new("/etc/nacp/config.toml"));
        found.map_err(|failure| {
            format!(
                "{}: {}",
                failure.message,
                failure.hint.as_deref().unwrap_or_default()
            )
        })
    }

    const FILE: &str = "default = \"dev\"\n\
        [context.dev]\ntarget = \"weather@localhost:7420\"\ntimeout = \"2s\"\n\
        [context.live]\ntarget = \"[::1]:1\"\nas = \"me\"\nauth-file = \"token\"\n";

    #[test]
    fn the_default_context_is_taken_where_none_is_named() {
        let context = find(FILE, None).unwrap();
        assert_eq!(
            context.target.unwrap().to_string(),
            "weather@localhost:7420"
        );
        let context = find(FILE, Some("live")).unwrap();
        assert_eq!(context.own.unwrap().as_str(), "me");
    }

    #[test]
    fn an_unknown_context_is_answered_with_those_there_are() {
        let error = find(FILE, Some("lvie")).unwrap_err();
        assert_eq!(
            error,
            "there is no context `lvie`: /etc/nacp/config.toml has dev, live"
        );
        assert!(
            find("", Some("x"))
                .unwrap_err()
                .contains("has no [context.x]")
        );
        assert!(find("", None).unwrap().target.is_none());
    }

    #[test]
    fn what_is_misspelt_or_cannot_be_is_refused() {
        assert!(find("[context.a]\ntraget = \"h:1\"", None).is_err());
        assert!(find("[context.a]\ntarget = \"h\"", None).is_err());
        assert!(find("[context.a]\nauth = \"secret\"", None).is_err());
    }
}
