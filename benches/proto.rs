//! Criterion benches of `nacp-proto`.

use criterion::{criterion_group, criterion_main, Criterion};

fn layer(_: &mut Criterion) {}

criterion_group!(benches, layer);
criterion_main!(benches);
