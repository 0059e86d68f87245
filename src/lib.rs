//! NACP: long-running calls between apps that survive broken connections.
#![warn(missing_docs)]
