use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::failure::Failure;

/// A credential. It is shown nowhere.
#[derive(Clone)]
pub(crate) struct Secret(String);

/// Longer ones are something else.
const MAX_BYTES: u64 = 64 << 10;

impl Secret {
    pub(crate) const fn new(secret: String) -> Self {
        Self(secret)
    }

    /// Reads a file that nobody else may read, without the white space at its end.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or others may.
    pub(crate) fn from_file(path: &Path) -> Result<Self, Failure> {
        let failure = |what: String| Failure::local("auth", format!("{}: {what}", path.display()));
        let mut file = File::open(path).map_err(|error| failure(error.to_string()))?;
        if is_open_to_others(&file).map_err(|error| failure(error.to_string()))? {
            return Err(failure("others may read this secret".to_owned())
                .hint(format!("chmod 600 {}", path.display())));
        }
        let mut secret = String::new();
        let read = (&mut file).take(MAX_BYTES + 1).read_to_string(&mut secret);
        let read = read.map_err(|error| failure(error.to_string()))?;
        if read as u64 > MAX_BYTES {
            return Err(failure(format!("a secret of more than {MAX_BYTES} bytes")));
        }
        secret.truncate(secret.trim_end().len());
        Ok(Self(secret))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(unix)]
fn is_open_to_others(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(file.metadata()?.permissions().mode() & 0o077 != 0)
}

/// Elsewhere the folder's own rights must do.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on the systems that can fail")]
fn is_open_to_others(_: &File) -> io::Result<bool> {
    Ok(false)
}
