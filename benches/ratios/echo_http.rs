//! `http-echo`: the echo server over Streamable HTTP with hyper, nothing else before it.
//!
//! One thread, keep-alive, answers as plain JSON: the floor of every ratio over HTTP.

use std::convert::Infallible;
use std::io::{self, Write};
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::task::LocalSet;

use crate::args::Args;
use crate::echo::Manner;

/// The role `echo-http [--port N] [--era …]`. Its first line on stdout is its address.
pub fn run(args: &Args) -> io::Result<()> {
    let manner = Rc::new(Manner::from_args(args));
    let port = args.number("--port").unwrap_or(0);
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
        println!("http://{}/mcp", listener.local_addr()?);
        io::stdout().flush()?;
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            let manner = Rc::clone(&manner);
            tokio::task::spawn_local(async move {
                let service = service_fn(|request| answer(&manner, request));
                // A host that leaves in the middle is no concern of an echo.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
            });
        }
    })
}

async fn answer(
    manner: &Manner,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() != Method::POST {
        // No stream of its own and no sessions to end.
        return Ok(status(StatusCode::METHOD_NOT_ALLOWED));
    }
    let Ok(body) = request.into_body().collect().await else {
        return Ok(status(StatusCode::BAD_REQUEST));
    };
    let mut out = Vec::new();
    manner.answer(&body.to_bytes(), &mut out);
    if out.is_empty() {
        return Ok(status(StatusCode::ACCEPTED));
    }
    let mut response = Response::new(Full::from(out));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn status(code: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = code;
    response
}
