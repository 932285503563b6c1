use std::time::Duration;

use leasehold_client::{Client, Request};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::new("http://127.0.0.1:3000")?;
    let lease = client
        .acquire(Request::new("billing:close:2026-04", Duration::from_secs(30)).owner("worker-7"))
        .await?;
    let work = async { /* each write carries lease.fencing_token() */ };
    tokio::select! {
        () = work => {}
        loss = lease.lost() => eprintln!("stop: {loss}"),
    }
    lease.release().await?;
    Ok(())
}
