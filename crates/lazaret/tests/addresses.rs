//! A running proxy tells where its listeners accept, also after its configuration was replaced.
#![allow(clippy::unwrap_used, missing_docs)]

use std::net::{TcpListener, TcpStream};

use lazaret::{Builder, Lazaret};

#[test]
fn addresses_are_those_of_the_configuration_in_force() {
    let running = listening(&["kept", "gone"]).build().unwrap().start().unwrap();
    let kept = running.address("kept").unwrap();
    assert!(running.address("gone").is_some());
    assert_eq!(running.address("new"), None);

    running.reconfigure(listening(&["kept", "new"]).build().unwrap()).unwrap();
    assert_eq!(running.address("kept"), Some(kept));
    assert_eq!(running.address("gone"), None);
    TcpStream::connect(running.address("new").unwrap()).unwrap();

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = listening(&["new"]).listener("other", &taken.local_addr().unwrap().to_string());
    assert!(running.reconfigure(refused.build().unwrap()).is_err());
    assert_eq!(running.address("kept"), Some(kept));
    assert_eq!(running.address("other"), None);
    running.stop();
}

fn listening(listeners: &[&str]) -> Builder {
    let builder = Lazaret::builder().workers(1).control("127.0.0.1:0").control_socket("off");
    listeners.iter().fold(builder, |builder, id| builder.listener(id, "127.0.0.1:0"))
}
