//! One app listens to the events of another: by pattern, as a stream.

use std::io::Write as _;

use nacp::NApp;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let station = NApp::builder("station")
        .listen("127.0.0.1:0")
        .start()
        .await?;
    let app = NApp::builder("app").start().await?;
    app.connect(station.listen_addrs()[0]).await?;

    let mut readings = app.subscribe("station", "temperature:*").await?;
    station.emit("temperature:kitchen", &21.5)?;
    station.emit("humidity:kitchen", &40.0)?;
    station.emit("temperature:garden", &-3.0)?;

    let mut out = std::io::stdout();
    for _ in 0..2 {
        let Some(reading) = readings.next().await else {
            break;
        };
        writeln!(out, "{}: {} °C", reading.name, reading.decode::<f64>()?)?;
    }
    readings.unsubscribe().await?;
    app.terminate().await;
    station.terminate().await;
    Ok(())
}
