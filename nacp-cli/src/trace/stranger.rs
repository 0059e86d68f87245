/// What speaks at the other end, by its first bytes, if it is something well known.
pub(crate) fn stranger(first_bytes: &[u8]) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 12] = [
        (b"HTTP/", "an HTTP server"),
        (b"<!DOC", "an HTTP server"),
        (b"<html", "an HTTP server"),
        (b"\x00\x00\x12\x04", "an HTTP/2 server"),
        (b"\x00\x00\x06\x04", "an HTTP/2 server"),
        (b"SSH-", "an SSH server"),
        (b"\x15\x03", "a TLS server"),
        (b"-ERR", "a Redis server"),
        (b"INFO {", "a NATS server"),
        (b"AMQP", "an AMQP broker"),
        (b"220 ", "a mail or FTP server"),
        (b"* OK", "an IMAP server"),
    ];
    let known = KNOWN
        .iter()
        .find(|(start, _)| first_bytes.starts_with(start));
    known.map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::stranger;

    #[test]
    fn well_known_servers_are_recognised_by_their_first_bytes() {
        assert_eq!(
            stranger(b"HTTP/1.1 400 Bad Request"),
            Some("an HTTP server")
        );
        assert_eq!(stranger(b"SSH-2.0-OpenSSH_9.2"), Some("an SSH server"));
        assert_eq!(stranger(&[0x15, 3, 1, 0, 2]), Some("a TLS server"));
        assert_eq!(stranger(b"\x8f\x01\x02"), None);
        assert_eq!(stranger(b""), None);
    }
}
